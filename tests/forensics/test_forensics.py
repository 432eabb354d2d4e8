"""Each planted bug is named first by what the judge says of the wrong output."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evaluator.evaluation import Backend, Candidate, EvaluationRequest, Settings, Status
from evaluator.executor.local import LocalExecutor
from tests.forensics.corpus import PLANTED, Planted, candidate, reference
from tools.diagnose import explain


@pytest.fixture(scope="module")
def executor() -> Iterator[LocalExecutor]:
    with LocalExecutor("cpu") as running:
        yield running


def each(planted: tuple[Planted, ...]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("planted", planted, ids=lambda one: one.name)


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
    assert len(PLANTED) >= 30
    assert len({planted.bug for planted in PLANTED}) >= 18
