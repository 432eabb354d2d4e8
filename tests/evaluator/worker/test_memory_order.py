"""In which order an output's elements lie."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from evaluator.worker.memory_order import MemoryOrder

PLAIN = torch.empty(2, 3, 4, 5)


@pytest.mark.parametrize(
    "tensor",
    [PLAIN, PLAIN.permute(2, 0, 3, 1), PLAIN.mT[::2, :, 1::2], PLAIN[:, :1], torch.empty(())],
)
def test_without_gaps_it_is_that_of_a_tensor_like_it(tensor: torch.Tensor) -> None:
    order = MemoryOrder(tuple(tensor.shape), tuple(tensor.stride()))
    assert order.holds(torch.empty_like(tensor).stride())
    assert order.holds(tensor.stride())
    differs = torch.empty_like(tensor).stride() != tensor.contiguous().stride()
    assert order.holds(tensor.contiguous().stride()) is not differs


def test_a_worker_finds_it_without_imports_that_take_seconds() -> None:
    finds = "from evaluator.worker.memory_order import *; MemoryOrder((2, 3), (1, 2)).dense; "
    loaded = "import sys; print('sympy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", finds + loaded], capture_output=True, check=True)
    assert done.stdout == b"False\n"
