"""In how many workers a candidate is timed where memory is short."""

from __future__ import annotations

import pytest

from evaluator.evaluation import EvaluationRequest, Status
from evaluator.judge.context.problem_context import ProblemContext
from evaluator.judge.timing import timed_workers
from evaluator.judge.workers.module_runner import ModuleRunner
from tests.evaluator.made_requests import SCALE_AND_BIAS, evaluation_request


def request() -> EvaluationRequest:
    candidate = SCALE_AND_BIAS.replace("Model(", "ModelNew(")
    return evaluation_request(candidate, timing_seconds=1.0, relative_width=1e-9, audit="never")


@pytest.mark.thorough
@pytest.mark.parametrize("large_bytes", [0, 2**30])
def test_where_two_workers_of_eager_find_memory_others_take_the_place_of_one(
    judge, monkeypatch, large_bytes
) -> None:
    def two_find_room(context: ProblemContext, runner: ModuleRunner, more: int) -> bool:
        assert more == 1 or large_bytes, "large ones start one after the other"
        return len(context.baselines.running_eager) + more <= 2

    monkeypatch.setattr(timed_workers, "_LARGE_BYTES", large_bytes)
    monkeypatch.setattr(timed_workers, "_has_room", two_find_room)
    evaluation = judge.evaluate(request())
    assert evaluation.status is Status.CORRECT and evaluation.timing.workers == 4
    assert list(judge.context_for(request()).baselines.running_eager) == [0], "the others ended"


def test_where_one_finds_none_for_another_there_is_one(judge, monkeypatch) -> None:
    monkeypatch.setattr(timed_workers, "_has_room", lambda context, runner, more: False)
    evaluation = judge.evaluate(request())
    assert evaluation.status is Status.CORRECT, evaluation.message
    assert evaluation.timing.workers == 1
    assert evaluation.notes.count("no time or memory for more workers: timed in 1 of 4") == 1
