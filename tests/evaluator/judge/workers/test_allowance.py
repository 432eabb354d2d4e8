"""What a candidate costs the judge ends its own evaluation, and never the judge."""

from __future__ import annotations

import time

import pytest

from evaluator.evaluation import Evaluation, Status
from evaluator.judge.judge import Judge
from evaluator.judge.rejection import Rejection
from evaluator.judge.workers import module_runner
from evaluator.judge.workers.allowance import Allowance
from evaluator.settings import Settings
from tests.evaluator.made_requests import HONEST, evaluation_request, forward

_LIMIT = "evaluator.judge.workers.allowance._LIMIT_S"


def test_it_is_spent_by_all_replies_together(monkeypatch):
    monkeypatch.setattr(_LIMIT, 0.2)
    allowance = Allowance()
    with allowance.handling(2**20):
        time.sleep(0.25)
    with pytest.raises(Rejection, match="longer than usual"), allowance.handling(0):
        while True:
            pass
    with allowance.handling(2**30):
        time.sleep(0.2)


def test_a_reply_that_keeps_the_judge_busy_ends_the_evaluation(judge, monkeypatch):
    def busy(outputs: object) -> bool:
        while True:
            pass

    with monkeypatch.context() as patch:
        patch.setattr(_LIMIT, 0.2)
        patch.setattr(module_runner, "any_overlap", busy)
        refused = judge.evaluate(evaluation_request(timing_seconds=0.05))
    assert (refused.status, refused.reason) == (Status.TIMEOUT, "reply_timeout")
    after = judge.evaluate(evaluation_request(timing_seconds=0.05))
    assert after.status is Status.CORRECT, after.message


SLEEPS = "import time\n" + HONEST.replace("return ", "time.sleep(0.25)\n        return ")


@pytest.mark.parametrize("right", [-1, 0, 8])
def test_what_fails_has_had_the_device(judge, right):
    fails = f"CALLS.append(time.sleep(2 * (len(CALLS) == {right})))\nassert len(CALLS) <= {right}"
    body = f"{fails}\nreturn torch.relu(x * self.scale + self.bias) * 2.0"
    first = f"import time\nCALLS = []\nif {right} < 0: raise ValueError(time.sleep(2))"
    failed = judge.evaluate(evaluation_request(forward(body, first)))
    assert failed.reason == ("import_raised" if right < 0 else "forward_raised")
    assert (failed.seconds.timing > 0) == (right > 0) and failed.seconds.device > 1


def judged(judge: Judge, monkeypatch: pytest.MonkeyPatch, limit_s: float) -> Evaluation:
    monkeypatch.setattr(Settings, "candidate_timeout_s", limit_s)
    return judge.evaluate(evaluation_request(SLEEPS, timing_seconds=1.0, audit="never"))


def test_who_sleeps_in_each_call_is_refused_in_one_of_the_first(judge, monkeypatch):
    refused = judged(judge, monkeypatch, 2.0)
    assert (refused.status, refused.reason) == (Status.TIMEOUT, "call_timeout"), refused.message
    assert "in all its imports and calls took longer than 2" in refused.message
    assert 1 <= refused.correctness.calls_made <= 8


def test_who_is_slow_is_timed_in_one_worker(judge, monkeypatch):
    slow = judged(judge, monkeypatch, 6.0)
    assert slow.status is Status.CORRECT, slow.message
    assert (slow.timing.workers, slow.timing.calls) == (1, 9)
    assert slow.notes.count("no time or memory for more workers: timed in 1 of 4") == 1
