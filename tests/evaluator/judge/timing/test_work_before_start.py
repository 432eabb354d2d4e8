"""Who is late to get ready for its calls is timed again, and refused where it is late again."""

from __future__ import annotations

import pytest

from evaluator.evaluation import EvaluationRequest, Status
from evaluator.judge import evaluation_run
from tests.evaluator.made_requests import HONEST, SCALE_AND_BIAS, evaluation_request

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


WATCHES = """
import sys

SEEN = []
CALLS = []
worker = sys.modules["evaluator.worker.worker"]
real = worker.Channel.spin

def spin(self, seconds):
    x = sys._getframe(1).f_locals["arguments"][0]
    # In later calls this would itself be work before the start, which is timed.
    SEEN[:] = [x.clone()] if len(CALLS) < 3 else []
    CALLS.append(None)
    return real(self, seconds)

worker.Channel.spin = spin

""" + HONEST.replace("* 2.0", "* (2.0 if all(torch.equal(seen, x) for seen in SEEN) else 0.0)")


@pytest.mark.thorough
def test_large_inputs_do_not_arrive_while_a_worker_waits_for_the_start(evaluate):
    """They lie there before it gets ready, which is timed: it can't work on parts as they come."""
    # A little over 16 MiB, from which on they come first.
    large = SCALE_AND_BIAS.replace("ROWS, FEATURES = 256, 512", "ROWS, FEATURES = 8448, 512")
    evaluation = evaluate(WATCHES, large)
    assert evaluation.status is Status.CORRECT, evaluation.message
