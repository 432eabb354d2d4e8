from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.builder.builder import Builder
from evaluator.evaluation import Status
from evaluator.ipc.build_request import BuildOutcome, BuildRequest
from evaluator.judge.builds.build_allowance import MOST_BUILDS, MOST_TIMES, BuildAllowance
from evaluator.judge.rejection import Rejection

ORDER = BuildRequest(name="not a name")
"""Refused at once, by the builder."""


class Slow(Builder):
    """Says that each build took so long."""

    def __init__(self, cache: Path, seconds: float) -> None:
        super().__init__(cache)
        self.seconds = seconds
        self.limits_s: list[float] = []

    def build(self, _: BuildRequest, limit_s: float = 180.0, **__: object) -> BuildOutcome:
        self.limits_s.append(limit_s)
        return BuildOutcome(ok=True, library="", cached=True, seconds=self.seconds)


def test_so_many_and_no_more(tmp_path: Path) -> None:
    allowance = BuildAllowance(Builder(tmp_path), 180.0)
    for _ in range(MOST_BUILDS):
        assert not allowance.build(ORDER).ok
    with pytest.raises(Rejection, match=f"more than {MOST_BUILDS} times") as refused:
        allowance.build(ORDER)
    assert refused.value.reason == "too_many_builds"
    assert not allowance.cached


def test_so_long_and_no_longer(tmp_path: Path) -> None:
    builder = Slow(tmp_path, 10.5)
    allowance = BuildAllowance(builder, 10.0)
    for _ in range(MOST_TIMES):
        allowance.build(ORDER)
    with pytest.raises(Rejection, match=f"longer than {10 * MOST_TIMES} s together") as refused:
        allowance.build(ORDER)
    assert (refused.value.status, refused.value.reason) == (Status.TIMEOUT, "build_timeout")
    assert allowance.seconds == 10.5 * MOST_TIMES
    assert builder.limits_s == [10.0, 7.375, 4.75, 2.125]
    assert allowance.cached
