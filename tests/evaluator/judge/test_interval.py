from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.evaluation import Verdict
from evaluator.judge.interval import Interval, median_interval, speedup_verdict


@given(st.lists(st.floats(0.1, 1e6), min_size=1, max_size=200))
def test_the_interval_holds_its_median(values):
    interval = median_interval(values)
    assert interval.value == pytest.approx(statistics.median(values))
    assert interval.low <= interval.value <= interval.high


def test_too_few_values_say_nothing():
    assert median_interval([1.0] * 5).high == math.inf


@pytest.mark.parametrize("count", [6, 11, 30, 101])
def test_it_covers_the_true_median_as_often_as_it_says(count):
    source = random.Random(count)
    hits = 0
    for _ in range(2000):
        # Skewed, with outliers: as times are.
        values = [math.exp(source.gauss(0, 0.3)) for _ in range(count)]
        interval = median_interval(values)
        hits += interval.low <= 1.0 <= interval.high
    assert hits / 2000 > 0.935


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (1.02, 1.10, Verdict.FASTER),
        (0.80, 0.99, Verdict.SLOWER),
        (0.996, 1.005, Verdict.SAME),
        (0.95, 1.05, Verdict.UNCLEAR),
    ],
)
def test_verdicts(low, high, verdict):
    assert speedup_verdict(Interval((low + high) / 2, low, high)) is verdict
