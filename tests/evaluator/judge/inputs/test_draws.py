"""Inputs that are drawn, and the memory that they share."""

from __future__ import annotations

import fcntl
from contextlib import closing

import pytest
import torch

from evaluator.judge.inputs.arena import make_arena
from evaluator.judge.inputs.draws import Draws
from evaluator.judge.inputs.input_kinds import InputKinds
from evaluator.judge.problem.reference import Reference
from evaluator.judge.problem.variation import Kind
from evaluator.settings import Precision
from evaluator.worker.values import decode
from tests.task import task

F_SEAL_FUTURE_WRITE = 0x0010
LOOK_UP = task("return x", x="torch.randint(0, 100, (4096,))")


def test_a_call_gets_its_own_inputs_after_others_were_drawn_in_the_same_memory():
    """An index that is another draw's margin (-1) would be out of range."""
    draws = Draws(
        Reference(LOOK_UP, torch.device("cpu"), Precision.FP32),
        2**16,
        InputKinds([Kind.PLAIN]),
        reproducible=True,
        is_random=False,
    )
    with closing(draws.arena):
        earlier = draws.plain()
        for _ in range(20):
            draws.next()
        laid = draws.laid(earlier)
        laid.lay()
        (given,) = (decode(v, draws.arena.bytes, lambda t: t) for v in laid.arguments)
        assert torch.equal(given, draws.values_of(earlier)[0])
        assert draws.laid(last := draws.next()) is last.order


@pytest.mark.parametrize("read_only", [True, False])
def test_no_worker_seals_it_against_the_workers_to_come(read_only: bool) -> None:
    with closing(make_arena(torch.device("cpu"), 4096, read_only_for_others=read_only)) as arena:
        with pytest.raises(PermissionError):
            fcntl.fcntl(arena.fd, fcntl.F_ADD_SEALS, F_SEAL_FUTURE_WRITE)
        arena.bytes.fill_(1)
