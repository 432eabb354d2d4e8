"""Shares over a folder of kernels."""

from __future__ import annotations

from evaluator.batch.verdict_lines import folder_lines
from evaluator.errors import DeviceError
from evaluator.evaluation import Evaluation, Status, Verdict
from tests.evaluator.made_evaluations import correct


def test_shares_by_the_estimate_and_by_the_interval() -> None:
    outcomes = [
        correct(3.0, low=2.5),
        correct(2.1, low=1.6),
        correct(1.6, low=1.2),
        correct(1.1, low=1.01, verdict=Verdict.UNCLEAR),  # within the margin of equal kernels
        correct(0.5, low=0.4),
        correct(None),
        Evaluation(status=Status.TIMEOUT, reason="call_timeout"),
        Evaluation(status=Status.TIMEOUT, reason="call_timeout"),
        DeviceError("it fell off the bus"),
    ]
    first, head, estimate, clearly, untimed = folder_lines(outcomes)
    assert first == "6 of 9 kernels are correct; 1 cannot be judged"
    assert "of 8 kernels judged" in head
    assert estimate.split()[-4:] == ["0.750", "0.500", "0.375", "0.250"]
    assert clearly.split()[-4:] == ["0.750", "0.375", "0.250", "0.125"]
    assert untimed == "1 correct without a time: counted at p = 0 alone"


def test_where_nothing_could_be_judged() -> None:
    outcome = DeviceError("it fell off the bus")
    assert list(folder_lines([outcome])) == ["0 of 1 kernels are correct; 1 cannot be judged"]
