from __future__ import annotations

import pytest
import torch

from evaluator.judge.placement import Placement


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_around_a_tensor_there_are_no_numbers(dtype: torch.dtype) -> None:
    memory = torch.zeros(2**15, dtype=torch.uint8)
    placement = Placement(memory, 1024)
    placed = [placement.place(torch.ones(33, dtype=dtype)) for _ in range(2)]
    values = memory.view(dtype)
    size = dtype.itemsize
    inside = torch.zeros(values.numel(), dtype=torch.bool)
    for layout in placed:
        first = layout["offset"] // size
        inside[first : first + 33] = True
    assert bool((values[inside] == 1).all())
    last = int(inside.nonzero().max())
    around = values[1 : last + 100][~inside[1 : last + 100]]
    assert bool(around.isnan().all())


SUM = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return x.sum()

def get_inputs():
    return [torch.rand(1000)]

def get_init_inputs():
    return []
"""

ONE_TOO_MANY = """
import ctypes
import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def forward(self, x):
        beyond = ctypes.c_float.from_address(x.data_ptr() + {offset}).value
        return x.sum() + {factor} * beyond
"""


@pytest.mark.parametrize("offset", [-4, 4 * 1000, 4 * 1100])
def test_a_read_beyond_the_end_shows_however_little_it_would_add(evaluate, offset) -> None:
    source = ONE_TOO_MANY.format(offset=offset, factor="1e-9")
    evaluation = evaluate(source, SUM)
    assert evaluation.reason == "wrong_values"
    assert "nan" in evaluation.correctness.mismatch.patterns
