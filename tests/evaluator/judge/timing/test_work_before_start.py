"""Who is late to get ready for its calls is timed again, and refused where it is late again."""

from __future__ import annotations

import pytest

from evaluator.evaluation import EvaluationRequest, Status
from evaluator.judge import evaluation_run
from tests.evaluator.made_requests import HONEST, evaluation_request

SLOW_TO_GET_READY = f"""
import json
import time

loads = json.loads

def late(*arguments, **named):
    order = loads(*arguments, **named)
    if "copy" in order:
        time.sleep(0.25)
    return order

json.loads = late
{HONEST}
"""


def request(source: str) -> EvaluationRequest:
    return evaluation_request(source, timing_seconds=0.2, audit="never")


@pytest.mark.thorough
def test_who_is_late_each_time_is_refused(judge):
    evaluation = judge.evaluate(request(SLOW_TO_GET_READY))
    assert (evaluation.status, evaluation.reason) == (Status.INTEGRITY, "work_before_start")


@pytest.mark.slow
def test_who_was_late_once_is_timed_anew(judge, monkeypatch):
    told, samples = [True, False], []
    sample = evaluation_run.sample

    def noted(*arguments, **named):
        samples.append(sample(*arguments, **named))
        return samples[-1]

    monkeypatch.setattr(evaluation_run, "sample", noted)
    monkeypatch.setattr(evaluation_run, "works_early", lambda mine, eager: told.pop(0))
    evaluation = judge.evaluate(request(HONEST))
    assert evaluation.status is Status.CORRECT, evaluation.message
    _, counted = samples
    assert evaluation.timing.baselines["eager"].pairs == len(counted.candidate.total_us)
    assert not told
