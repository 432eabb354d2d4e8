"""Medians and their confidence intervals, without assumptions about how times are distributed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from evaluator.evaluation import Verdict

VERDICT_CONFIDENCE = 0.995


@dataclass(frozen=True)
class Interval:
    """An estimate and the bounds of its interval, of 95 % where nothing else is said."""

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


def speedup_verdict(ratios: Sequence[float], margin: float) -> Verdict:
    """What paired ratios, baseline over candidate, say of the speedup.

    With the 99.5 % interval of their median: `faster` and `slower`, if all of it lies beyond the
    margin on one side of 1; `same`, if all of it lies within twice the margin; else `unclear`.

    The margin is what two equal kernels may differ by for reasons that are no merit of theirs
    (where their processes' memory happened to lie). It and the higher confidence keep the share of
    equal pairs that are called faster or slower under 1 %, although the sampling stops as soon as
    the 95 % interval is narrow, which favours lucky narrow ones (`docs/timing.md`).
    """
    ratio = median_interval(ratios, VERDICT_CONFIDENCE)
    if ratio.low > 1.0 + margin:
        return Verdict.FASTER
    if ratio.high < 1.0 / (1.0 + margin):
        return Verdict.SLOWER
    if 1.0 / (1.0 + 2 * margin) <= ratio.low and ratio.high <= 1.0 + 2 * margin:
        return Verdict.SAME
    return Verdict.UNCLEAR
