from __future__ import annotations

import pytest
import torch

from evaluator.judge.inputs.mapped_arguments import MappedArguments
from evaluator.judge.inputs.placement import MARGINS, Placement
from tests.task import task

FLOATING = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", FLOATING)
def test_around_a_tensor_there_are_no_numbers_or_such_beyond_any_other(dtype: torch.dtype) -> None:
    none, large, small = (_around(dtype, margin) for margin in MARGINS)
    assert bool(none.isnan().all())
    assert bool((large.isfinite() & (large > 6e4)).all())
    assert bool((small.isfinite() & (small < -6e4)).all())


@pytest.mark.parametrize("margin", MARGINS)
def test_around_integers_there_is_minus_one(margin: int) -> None:
    memory = torch.zeros(2**13, dtype=torch.uint8)
    end = Placement(memory, 512, margin).place(torch.ones(33, dtype=torch.int64))["span"] + 512
    assert bool((memory[end : end + 4096].view(torch.int64) == -1).all())


def _around(dtype: torch.dtype, margin: int) -> torch.Tensor:
    """What lies before, between and behind two tensors of ones, of whole kilobytes or halves."""
    memory = torch.zeros(2**15, dtype=torch.uint8)
    placement = Placement(memory, 1024, margin)
    placed = [placement.place(torch.ones(256, dtype=dtype)) for _ in range(2)]
    values = memory.view(dtype)
    size = dtype.itemsize
    inside = torch.zeros(values.numel(), dtype=torch.bool)
    for layout in placed:
        first = layout["offset"] // size
        inside[first : first + 256] = True
    assert int(inside.sum()) == 512
    assert bool((values[inside] == 1).all())
    one, two = (layout["offset"] for layout in placed)
    assert two - one - placed[0]["span"] >= 64
    last = int(inside.nonzero().max())
    return values[1 : last + 100][~inside[1 : last + 100]]


ONE_TOO_MANY = """
import ctypes
import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def forward(self, x):
        beyond = ctypes.c_float.from_address(x.data_ptr() + {offset}).value
        return {result}
"""


@pytest.mark.parametrize(
    ("offset", "reason"),
    [(-4, "wrong_values"), (4 * 1000, "wrong_values"), (4 * 1100, "memory_error")],
)
def test_a_read_beyond_the_end_shows_however_little_it_adds(evaluate, offset, reason) -> None:
    evaluation = _one_too_many(evaluate, "sum", offset, "x.sum() + 1e-9 * beyond")
    assert evaluation.reason == reason


@pytest.mark.parametrize(("reduced", "fold"), [("max", "fmax"), ("min", "fmin")])
def test_it_shows_in_a_maximum_which_passes_nan_over(evaluate, reduced, fold) -> None:
    result = f"torch.{fold}(x.{reduced}(), torch.tensor(beyond))"
    evaluation = _one_too_many(evaluate, reduced, 4 * 1000, result)
    assert evaluation.reason == "wrong_values"


def _one_too_many(evaluate, reduced: str, offset: int, result: str):
    source = ONE_TOO_MANY.format(offset=offset, result=result)
    return evaluate(source, task(f"return x.{reduced}()", x="torch.rand(1000)"))


def test_large_tensors_are_laid_once_from_where_they_were_made() -> None:
    arena = torch.zeros(2**14, dtype=torch.uint8)
    values = [torch.arange(40.0).view(5, 8).t(), torch.ones(1, 3).expand(4, 3), 3]
    nowhere = Placement(torch.empty_like(arena, device="meta"), 512, MARGINS[1])
    laid = MappedArguments(arena, nowhere, values)
    assert not arena.any()
    laid.lay()
    assert laid.is_spent
    wanted = Placement(torch.zeros_like(arena), 512, MARGINS[1])
    assert laid.arguments == [wanted.place(value) for value in values]
    assert torch.equal(arena, wanted.memory)
    with pytest.raises(AssertionError, match="gone"):
        laid.lay()
