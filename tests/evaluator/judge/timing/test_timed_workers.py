"""In how many workers a candidate is timed where memory is short."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from evaluator.build.builder import Builder
from evaluator.evaluation import EvaluationRequest, Status
from evaluator.judge.context.problem_context import ProblemContext
from evaluator.judge.judge import Judge
from evaluator.judge.timing import timed_workers
from evaluator.judge.workers.side import Side
from tests.evaluator.made_requests import SCALE_AND_BIAS, evaluation_request


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    started = Judge(torch.device("cpu"), Builder(tmp_path_factory.mktemp("cache")))
    yield started
    started.close()


def request() -> EvaluationRequest:
    candidate = SCALE_AND_BIAS.replace("Model(", "ModelNew(")
    return evaluation_request(candidate, timing_seconds=1.0, audit="never")


def test_where_two_workers_of_eager_find_memory_a_third_takes_the_place_of_one(
    judge, monkeypatch
) -> None:
    def two_find_room(context: ProblemContext, side: Side, timed: int, more: int) -> bool:
        baselines = context.baselines
        return len(baselines.running_eager) + len(baselines.missing_eager(timed, more)) <= 2

    monkeypatch.setattr(timed_workers, "_has_room", two_find_room)
    monkeypatch.setattr(timed_workers, "_is_enough", lambda context, samplings: False)
    for _ in range(2):
        evaluation = judge.evaluate(request())
        assert evaluation.status is Status.CORRECT, evaluation.message
        assert evaluation.timing.workers == 3
        assert evaluation.notes.count("no memory for more workers: timed in 3 of 4") == 1


@pytest.mark.parametrize(("running", "workers"), [(1, 1), (9, 4)])
def test_otherwise_in_one_or_in_all(judge, monkeypatch, running, workers) -> None:
    monkeypatch.setattr(
        timed_workers,
        "_has_room",
        lambda context, side, timed, more: timed + more <= running,
    )
    monkeypatch.setattr(timed_workers, "_is_enough", lambda context, samplings: False)
    evaluation = judge.evaluate(request())
    assert evaluation.status is Status.CORRECT, evaluation.message
    assert evaluation.timing.workers == workers
