from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.evaluation import Verdict
from evaluator.judge.timing.interval import median_interval, over_workers, speedup_verdict


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
        (0.80, 0.98, Verdict.SLOWER),
        (0.996, 1.005, Verdict.SAME),
        (1.003, 1.015, Verdict.SAME),
        (0.95, 1.05, Verdict.UNCLEAR),
        (1.005, 1.05, Verdict.UNCLEAR),
    ],
)
def test_verdicts_with_a_margin_of_one_percent(low, high, verdict):
    middle = (low + high) / 2
    # So many at either end that the interval at 99.5 % reaches both.
    assert speedup_verdict([[low] * 8 + [middle] + [high] * 8], 0.01)[0] is verdict


def test_few_pairs_are_never_enough_for_a_verdict():
    """At 99.5 % the interval of the median has no bounds with fewer than nine values."""
    assert speedup_verdict([[2.0] * 8], 0.01)[0] is Verdict.UNCLEAR
    assert speedup_verdict([[2.0] * 9], 0.01)[0] is Verdict.FASTER


@given(st.lists(st.lists(st.floats(0.5, 2.0), min_size=6, max_size=20), min_size=1, max_size=6))
def test_the_interval_shown_is_the_one_that_the_verdict_rests_on(ratios):
    verdict, shown = speedup_verdict(ratios, 0.01)
    assert (shown.low > 1.0) >= (verdict is Verdict.FASTER)
    assert (shown.high < 1.0) >= (verdict is Verdict.SLOWER)
    assert (shown.low <= 1.0 <= shown.high) >= (verdict is Verdict.UNCLEAR)


def _measured(source: random.Random, workers: int, between: float, within: float, blocks: int):
    """Ratios around 1 of several workers, each with a bias of its own, noise skewed as in calls."""
    return [
        [
            math.exp(bias + source.gauss(0, within) + source.expovariate(1 / within) / 4)
            for _ in range(blocks)
        ]
        for bias in (source.gauss(0, between) for _ in range(workers))
    ]


@pytest.mark.parametrize("workers", [3, 6])
@pytest.mark.parametrize(("between", "within"), [(0.003, 0.01), (0.02, 0.002), (0.0001, 0.05)])
def test_the_interval_holds_the_truth_whatever_differs_between_workers(workers, between, within):
    source = random.Random(workers)
    # The median of the noise itself, by many draws.
    truth = math.log(statistics.median(_measured(source, 1, 0.0, within, 20_000)[0]))
    runs, held = 600, 0
    for _ in range(runs):
        interval = over_workers(_measured(source, workers, between, within, 12))
        held += interval.low <= math.exp(truth) <= interval.high
    assert held / runs >= 0.93


@pytest.mark.parametrize("workers", [3, 6])
@pytest.mark.parametrize("between", [0.0005, 0.002, 0.005])
def test_kernels_that_differ_by_more_than_twice_the_margin_are_rarely_the_same(workers, between):
    source = random.Random(workers)
    same = 0
    for _ in range(600):
        ratios = _measured(source, workers, between, 0.003, 6)
        verdict, _ = speedup_verdict([[1.0105 * ratio for ratio in each] for each in ratios], 0.005)
        same += verdict is Verdict.SAME
    assert same / 600 <= 0.03


def test_of_one_worker_it_is_the_interval_of_the_median():
    values = [1.0, 1.1, 1.2, 1.15, 1.05, 1.3, 0.9, 1.0, 1.1]
    assert over_workers([values]) == median_interval(values)


def test_workers_that_agree_by_chance_do_not_narrow_what_differs_within_them():
    values = [0.9, 1.0, 1.1] * 4
    interval, pooled = over_workers([values, values, values]), median_interval(values * 3)
    assert interval.high / interval.low >= pooled.high / pooled.low * (1 - 1e-9)


def test_two_workers_that_differ_say_little():
    assert speedup_verdict([[1.5] * 20, [1.1] * 20], 0.01)[0] is Verdict.UNCLEAR
    assert over_workers([[1e-3] * 9, [1e3] * 9], 0.995).high == math.inf
