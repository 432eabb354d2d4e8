"""What calling an operator takes, on a machine that was busy when it was measured."""

from __future__ import annotations

import time

import pytest

from evaluator.hardware.cores import usable_cores
from evaluator.judge.timing import call_cost
from evaluator.judge.timing.call_cost import CallCost
from tests.evaluator.made_requests import evaluation_request
from tests.task import as_candidate, task

PRODUCT = task("return x @ x", x="torch.randn(512, 512)")
REQUEST = evaluation_request(
    as_candidate(PRODUCT), PRODUCT, timing_seconds=0.2, audit="never", call_timeout_s=20.0
)
KEY = "cpu", usable_cores()


@pytest.mark.parametrize("ago_s", [61.0, 0.0])
def test_it_is_measured_again_before_a_task_is_marked(judge, monkeypatch, ago_s):
    busy = CallCost(signal_us=0.0, operator_us=1e6)
    monkeypatch.setattr(call_cost, "_known", {KEY: (busy, time.monotonic() - ago_s)})
    is_fresh = not ago_s
    assert judge.evaluate(REQUEST).timing.launch_bound is is_fresh
    assert (call_cost._known[KEY][0].operator_us == 1e6) is is_fresh


def test_calls_that_others_delay_count_for_nothing(judge, monkeypatch):
    times = [100.0, 4000.0], [190.0] + [4000.0] * 20
    monkeypatch.setattr(call_cost, "_times_us", lambda _: times)
    monkeypatch.setattr(call_cost, "_known", {})
    assert not judge.evaluate(REQUEST).timing.launch_bound
    assert call_cost._known[KEY][0] == CallCost(100.0, 90.0)
