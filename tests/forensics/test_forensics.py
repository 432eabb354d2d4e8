"""Each planted bug is named first by what the judge says of the wrong output."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evaluator.evaluation import Backend, Candidate, EvaluationRequest, Status
from evaluator.executor.local import LocalExecutor
from evaluator.settings import Settings
from problems.loader import load_problem, load_suite
from problems.problem import SizeClass
from tests.forensics.corpus import PLANTED, Planted, candidate, reference
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


def each(planted: tuple[Planted, ...]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("planted", planted, ids=lambda one: one.name)


@pytest.mark.thorough
@each(PLANTED[::3])
def test_the_bug_is_named(executor: LocalExecutor, planted: Planted) -> None:
    assert_named(executor, planted)


@pytest.mark.slow
@each(tuple(one for number, one in enumerate(PLANTED) if number % 3))
def test_the_bug_is_named_in_the_others_too(executor: LocalExecutor, planted: Planted) -> None:
    assert_named(executor, planted)


def assert_named(executor: LocalExecutor, planted: Planted) -> None:
    """Judge it, and look at what is said first."""
    request = EvaluationRequest(
        problem_id=planted.name,
        reference=reference(planted),
        candidate=Candidate(source=candidate(planted), backend=Backend.CPP),
        settings=Settings(device="cpu", timing_seconds=0.1),
    )
    evaluation = executor.evaluate(request)
    said = explain(evaluation, request.candidate.source)
    assert evaluation.status is Status.INCORRECT, evaluation.message + evaluation.detail
    assert evaluation.correctness is not None
    found = evaluation.correctness.mismatch
    assert found is not None
    assert found.patterns[0] == planted.bug, said
    assert planted.bug in said
    assert all(str(seed) not in said for seed in evaluation.seeds)


def test_the_corpus_is_as_large_and_as_varied_as_it_should_be() -> None:
    assert len(PLANTED) >= 26
    assert len({planted.bug for planted in PLANTED}) >= 15


QUICK = "level2_5_conv_batch_norm_swish"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(problem.id, marks=() if problem.id == QUICK else pytest.mark.slow)
        for problem in load_suite()
    ],
)
def test_no_change_that_is_tried_ends_the_judge(executor: LocalExecutor, name: str) -> None:
    """An output that nothing explains, so that every change is tried."""
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
