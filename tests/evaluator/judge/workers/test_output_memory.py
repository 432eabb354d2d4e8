"""Whether outputs share elements: with each other, or with themselves."""

from __future__ import annotations

import pytest

from evaluator.evaluation import Status
from evaluator.ipc.reply import OutputLayout
from evaluator.judge.workers.output_memory import any_overlap, any_repeats
from tests.evaluator.conftest import Evaluate
from tests.task import task


def at(place: int, shape: tuple[int, ...], stride: tuple[int, ...], dtype: str = "float32"):
    return OutputLayout(dtype, shape, stride, 4096 + place)


DENSE = at(1024, (4, 8), (8, 1))
EVEN, ODD = at(0, (16,), (2,)), at(4, (16,), (2,))


@pytest.mark.parametrize(
    ("outputs", "shared"),
    [
        ([DENSE, at(1152, (4, 8), (8, 1))], False),
        ([DENSE, at(1144, (4, 8), (8, 1))], True),
        ([EVEN, ODD], False),
        ([EVEN, EVEN], True),
        ([at(32 * part, (16, 8), (24, 1)) for part in range(3)], False),
        ([DENSE, at(1028, (2,), (1,), "float64")], True),
        ([at(2**40, (8,), (1,)), at(0, (8,), (1,))], False),
        ([at(0, (0, 8), (8, 1)), at(0, (0, 8), (8, 1))], False),
        ([at(4 * number, (2**22,), (64,)) for number in range(64)], False),
    ],
)
def test_outputs_that_share_elements(outputs, shared):
    assert any_overlap(outputs) is shared


@pytest.mark.parametrize(
    ("output", "repeats"),
    [
        (DENSE, False),
        (at(0, (8, 4), (1, 8)), False),
        (at(0, (4, 8), (0, 1)), True),
        (at(0, (10, 4), (1, 1)), True),
        (at(0, (3, 3), (10, 5)), True),
        (at(0, (3, 3), (10, 3)), False),
        (at(0, (3, 2), (2, 3)), False),
        (at(0, (4, 2), (2, 3)), False),
        (at(0, (4, 3), (2, 3)), True),
        (at(0, (), ()), False),
        (at(0, (1,), (0,)), False),
        (at(0, (0,), (0,)), False),
    ],
)
def test_an_output_with_two_elements_at_one_address(output, repeats):
    assert any_repeats([output]) is repeats


TWO = task(
    """
    y = torch.relu(x)
    return y, y.clone()
    """,
    x="torch.randn(64, 128)",
)
SAME_VIEW = """
import torch

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], x.shape[1] + 1)[:, :-1]
        y.copy_(x).relu_()
        return y, y
"""


def test_one_strided_view_returned_twice_is_refused(evaluate: Evaluate) -> None:
    refused = evaluate(SAME_VIEW, TWO)
    assert (refused.status, refused.reason) == (Status.INTEGRITY, "borrowed_output")
    own = SAME_VIEW.replace("return y, y", "return y, y.clone()")
    assert evaluate(own, TWO).status is Status.CORRECT


def test_a_reference_may_return_an_expanded_view(evaluate: Evaluate) -> None:
    expanded = TWO.replace("return y, y.clone()", "return y[:1].expand(64, 128)")
    source = expanded.replace("class Model(", "class ModelNew(")
    assert evaluate(source, expanded).status is Status.CORRECT
