"""Medians and their confidence intervals, without assumptions about how times are distributed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from evaluator.evaluation import Verdict


@dataclass(frozen=True)
class Interval:
    """An estimate and the bounds of its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def relative_width(self) -> float:
        """Width over value."""
        return (self.high - self.low) / self.value if self.value else math.inf


@cache
def _rank(count: int, confidence: float) -> int:
    """Largest k with P(k <= Binomial(count, 1/2) <= count - k) >= confidence, else 0."""
    total = 0.0
    probability = 0.5**count
    best = 0
    for k in range(count // 2 + 1):
        # `total` is P(X < k): both tails are left out of the interval.
        if 1.0 - 2.0 * total < confidence:
            break
        best = k
        total += probability
        probability *= (count - k) / (k + 1)
    return best


def median_interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """The median and its distribution-free interval from order statistics.

    With n values sorted, [x_(k), x_(n-k+1)] covers the median with probability
    1 - 2 P(Binomial(n, 1/2) < k) (Conover, Practical Nonparametric Statistics, sec. 3.2). With
    fewer than 6 values there is no such k: the bounds are then 0 and infinity.
    """
    ordered = sorted(values)
    count = len(ordered)
    if not count:
        raise ValueError("no values")
    middle = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
    k = _rank(count, confidence)
    if k == 0:
        return Interval(middle, 0.0, math.inf)
    return Interval(middle, ordered[k - 1], ordered[count - k])


def speedup_verdict(ratio: Interval, band: float = 0.01) -> Verdict:
    """What the interval of a speedup says.

    `faster` and `slower`: all of it lies on one side of 1. `same`: all of it lies within the band
    around 1. Otherwise `unclear`.
    """
    if ratio.low > 1.0:
        return Verdict.FASTER
    if ratio.high < 1.0:
        return Verdict.SLOWER
    if 1.0 / (1.0 + band) <= ratio.low and ratio.high <= 1.0 + band:
        return Verdict.SAME
    return Verdict.UNCLEAR
