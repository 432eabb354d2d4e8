"""Where a sum cancels, the order of adding is excused; nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

from evaluator.judge.correctness.comparison import compare
from evaluator.judge.correctness.conditioning import MULTIPLE, nudged_outputs
from evaluator.judge.problem.exact_reference import ExactReference
from evaluator.judge.problem.reference import Reference
from evaluator.settings import Precision
from tests.task import task

CPU = torch.device("cpu")
BY_ITS_MEAN = task(
    """
    a = x * 2 + y
    return a * a.mean()
    """,
    x="torch.randn(30, 40)",
    y="torch.randn(30, 40)",
)
OVER_A_HALF = BY_ITS_MEAN.replace("return a * a.mean()", "return torch.where(x > 0.5, a, -a)")
IN_PLACE = BY_ITS_MEAN.replace("a = x * 2 + y", "a = x.add_(y)")


def reference(source: str = BY_ITS_MEAN) -> Reference:
    made = Reference(source, CPU, Precision.FP32)
    made.set_state(made.seeded)
    return made


def one_after_the_other(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """One accumulator in fp32, where PyTorch adds in pairs."""
    a = x * 2 + y
    total = np.cumsum(a.flatten().numpy())[-1]
    return a * torch.tensor(total / np.float32(a.numel()))


Kernel = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def refused(candidate: Kernel, draws: int) -> tuple[int, int, int]:
    """In how many draws without nudges, with them, and because none of them could excuse it."""
    right = reference()
    plain = with_nudges = beyond = 0
    for seed in range(draws):
        values = right.fresh_inputs(seed)
        exact = _in_fp64(right, values)
        verdict = partial(
            compare,
            [candidate(*values)],
            exact=exact,
            inputs=values,
            precision=Precision.FP32,
            accumulation=1200,
            describing=False,
        )
        first = verdict(right.expected(values))
        if not first.ok:
            plain += 1
            others = nudged_outputs(right, values, exact, Precision.FP32, seed)
            multiple = MULTIPLE[Precision.FP32]
            excused = any(verdict(other, multiple=multiple).ok for other in others)
            assert first.excusable or not excused
            with_nudges += not excused
            beyond += not first.excusable
    return plain, with_nudges, beyond


def test_the_order_of_adding_is_excused_where_the_sum_cancels() -> None:
    plain, with_nudges, beyond = refused(one_after_the_other, draws=800)
    assert plain > 0, "the reference is never nearly exact by luck: nothing is tested"
    assert with_nudges == beyond == 0


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x, y: one_after_the_other(x, y) * 1.001,
        lambda x, y: one_after_the_other(x, y.half().float()),
        lambda x, y: one_after_the_other(x, y) + 1e-3 * (torch.arange(40) == 7),
    ],
    ids=["a factor", "fp16 on the way", "a column"],
)
def test_a_wrong_value_is_refused_as_often_as_before(wrong: Kernel) -> None:
    plain, with_nudges, _ = refused(wrong, draws=60)
    assert plain >= 57
    assert with_nudges >= plain - 2


@pytest.mark.parametrize("factor", [1.01, 0.0, -1.0])
def test_what_no_reference_could_allow_is_told_at_once(factor: float) -> None:
    plain, with_nudges, beyond = refused(lambda x, y: one_after_the_other(x, y) * factor, draws=20)
    assert plain == with_nudges == beyond == 20


def test_a_threshold_that_is_crossed_excuses_nothing() -> None:
    steps = reference(OVER_A_HALF)
    x = torch.full((30, 40), 0.5)
    exact = _in_fp64(steps, [x, x])
    assert list(nudged_outputs(steps, [x, x], exact, Precision.FP32, 1)) == []
    away = [x * 3, x]
    exact = _in_fp64(steps, away)
    assert len(list(nudged_outputs(steps, away, exact, Precision.FP32, 1))) == 8


def test_each_element_is_allowed_what_the_worst_result_shows() -> None:
    right = reference()
    values = right.fresh_inputs(1)
    exact = _in_fp64(right, values)
    others = nudged_outputs(right, values, exact, Precision.FP32, 1)
    errors = [(output - exact[0]).abs() for (output,) in others]
    assert all(bool((one <= other).all()) for one, other in pairwise(errors))
    assert errors[-1].mean() > 1.5 * errors[0].mean()


@pytest.mark.parametrize("precision", [Precision.FP16, Precision.BF16])
def test_in_16_bits_nothing_is_nudged(precision: Precision) -> None:
    right = reference()
    values = right.fresh_inputs(1)
    exact = _in_fp64(right, values)
    assert list(nudged_outputs(right, values, exact, precision, 1)) == []


def test_a_nudge_that_the_reference_does_not_take_is_left_out() -> None:
    least_one = BY_ITS_MEAN.replace("a = x", "assert x.amax() <= 1\n        a = x")
    right = reference(least_one.replace("torch.randn(30, 40)", "torch.ones(30, 40)", 1))
    values = right.fresh_inputs(0)
    assert not list(nudged_outputs(right, values, _in_fp64(right, values), Precision.FP32, 0))


def test_inputs_stay_as_they_are() -> None:
    right = reference()
    values = right.fresh_inputs(1)
    before = [value.clone() for value in values]
    exact = _in_fp64(right, values)
    assert list(nudged_outputs(right, values, exact, Precision.FP32, 1))
    assert all(map(torch.equal, values, before))
    in_place = reference(IN_PLACE)
    in_place.changes_inputs = True
    assert list(nudged_outputs(in_place, values, exact, Precision.FP32, 1)) == []


def test_kernelbenchs_own_rule_excuses_nothing() -> None:
    right, wrong = torch.arange(9), torch.arange(9).flip(0)
    for tolerance, excusable in ((None, True), ((1e-4, 1e-4), False)):
        verdict = compare([wrong], [right], [right], [], Precision.FP32, tolerance=tolerance)
        assert (verdict.ok, verdict.excusable) == (False, excusable)


def _in_fp64(reference: Reference, values: list[Any]) -> list[torch.Tensor]:
    exact = ExactReference(reference).outputs(lambda: list(values))[0]
    assert exact is not None
    return exact
