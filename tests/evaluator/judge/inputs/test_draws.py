"""Inputs that are drawn, and the memory that they share."""

from __future__ import annotations

from contextlib import closing

import torch

from evaluator.judge.inputs.draws import Draws
from evaluator.judge.inputs.input_kinds import InputKinds
from evaluator.judge.problem.reference import Reference
from evaluator.judge.problem.variation import Kind
from evaluator.settings import Precision
from evaluator.worker.values import decode
from tests.task import task

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
