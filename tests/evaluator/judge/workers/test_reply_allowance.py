"""What a reply costs the judge ends the candidate's evaluation, and never the judge."""

from __future__ import annotations

import time

import pytest

from evaluator.evaluation import Status
from evaluator.judge.rejection import Rejection
from evaluator.judge.workers import module_runner
from evaluator.judge.workers.reply_allowance import ReplyAllowance
from tests.evaluator.made_requests import evaluation_request

_LIMIT = "evaluator.judge.workers.reply_allowance._LIMIT_S"


def test_it_is_spent_by_all_replies_together(monkeypatch):
    monkeypatch.setattr(_LIMIT, 0.2)
    allowance = ReplyAllowance()
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
