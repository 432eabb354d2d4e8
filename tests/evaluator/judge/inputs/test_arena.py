"""What a worker cannot do to the memory that the judge lends."""

from __future__ import annotations

import fcntl
from contextlib import closing

import pytest
import torch

from evaluator.judge.inputs.arena import make_arena

F_SEAL_FUTURE_WRITE = 0x0010


@pytest.mark.parametrize("read_only", [True, False])
def test_nobody_seals_it_against_the_workers_to_come(read_only: bool) -> None:
    with closing(make_arena(torch.device("cpu"), 4096, read_only_for_others=read_only)) as arena:
        with pytest.raises(PermissionError):
            fcntl.fcntl(arena.fd, fcntl.F_ADD_SEALS, F_SEAL_FUTURE_WRITE)
        arena.bytes.fill_(1)
