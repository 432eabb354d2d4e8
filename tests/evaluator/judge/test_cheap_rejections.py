"""What does not build, or is wrong on its first inputs, is refused before anything is timed."""

from __future__ import annotations

import pytest

from evaluator.evaluation import Backend, Evaluation, Status
from tests.evaluator.conftest import Evaluate
from tests.evaluator.made_requests import HONEST, SCALE_AND_BIAS

BUILDS_NOT = (
    "from torch.utils.cpp_extension import load_inline\n"
    "load_inline(name='none', cpp_sources='int f( {', functions=['f'])\n"
)
RIGHT = "torch.relu(x * self.scale + self.bias) * 2.0"
SMALLER = SCALE_AND_BIAS.replace("256, 512", "64, 96")


def was_timed(evaluation: Evaluation) -> bool:
    """Whether blocks of calls were made beside the baseline: what was seen then is told."""
    return any(name.startswith("timed_") for name in evaluation.conditions)


def test_one_that_is_right_is_timed(evaluate: Evaluate) -> None:
    evaluation = evaluate(HONEST)
    assert evaluation.status is Status.CORRECT, evaluation.message
    assert was_timed(evaluation)


@pytest.mark.parametrize(
    ("source", "status", "calls"),
    [
        ("class ModelNew(", Status.RUNTIME_ERROR, None),
        (BUILDS_NOT + HONEST, Status.BUILD_ERROR, None),
        (HONEST.replace("* 2.0", "* 2.5"), Status.INCORRECT, 1),
        (HONEST.replace(RIGHT, "x[:, :1]"), Status.INCORRECT, 1),
        (HONEST.replace(RIGHT, "1 / 0"), Status.RUNTIME_ERROR, 1),
    ],
    ids=["no Python", "no C++", "wrong values", "wrong shape", "raises"],
)
def test_one_that_fails_at_first_is_not(
    evaluate: Evaluate, source: str, status: Status, calls: int | None
) -> None:
    evaluation = evaluate(source, backend=Backend.CPP)
    assert evaluation.status is status, evaluation.message
    assert not was_timed(evaluation)
    assert (evaluation.correctness.calls_made if evaluation.correctness else None) == calls


def test_one_that_fails_at_hidden_sizes_is_not(evaluate: Evaluate) -> None:
    source = HONEST.replace(RIGHT, f"{RIGHT} * (1 if len(x) == 256 else 2)")
    evaluation = evaluate(source, hidden=(SMALLER,))
    assert evaluation.status is Status.INCORRECT
    assert evaluation.message.startswith("with other sizes")
    assert not was_timed(evaluation)
