"""A wrong output of any problem is described, and no look for its cause ends the judge."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evaluator.evaluation import Backend, Candidate, EvaluationRequest, Status
from evaluator.executor.local import LocalExecutor
from evaluator.settings import Settings
from problems.loader import load_problem, load_suite
from problems.sizes import SizeClass
from tools.diagnosis.diagnose import explain

WRONG = """

class ModelNew(Right):
    def forward(self, *inputs):
        return torch.utils._pytree.tree_map(spoilt, super().forward(*inputs))


def spoilt(out):
    if not out.is_floating_point():
        return out + 1
    return out * torch.linspace(0.5, 1.9, out.numel()).reshape(out.shape)
"""


@pytest.fixture(scope="module")
def executor() -> Iterator[LocalExecutor]:
    with LocalExecutor("cpu") as running:
        yield running


QUICK = "level2_5_conv_batch_norm_swish"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(problem.id, marks=() if problem.id == QUICK else pytest.mark.slow)
        for problem in load_suite()
    ],
)
def test_an_output_that_nothing_explains(executor: LocalExecutor, name: str) -> None:
    """So every way to run the reference is tried."""
    problem = load_problem(name)
    right = problem.reference(SizeClass.CPU).replace("class Model(", "class Right(")
    request = EvaluationRequest(
        problem_id=name,
        reference=problem.reference(SizeClass.CPU),
        candidate=Candidate(
            source=right.replace("super(Model,", "super(Right,") + WRONG, backend=Backend.CPP
        ),
        settings=Settings(device="cpu", timing_seconds=0.1),
    )
    evaluation = executor.evaluate(request)
    assert evaluation.status is Status.INCORRECT, evaluation.message + evaluation.detail
    assert evaluation.correctness is not None
    found = evaluation.correctness.mismatch
    assert found is not None
    assert found.wrong > 0 and found.examples and found.patterns
    assert "counterfactual" not in found.details
    said = explain(evaluation, request.candidate.source)
    assert found.patterns[0] in said
    assert all(str(seed) not in said for seed in evaluation.seeds)
