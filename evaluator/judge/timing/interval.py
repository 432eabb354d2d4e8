"""Medians and their confidence intervals, without assumptions about how times are distributed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean, median, stdev

from evaluator.evaluation import Verdict

VERDICT_CONFIDENCE = 0.995
FEWEST_VALUES = 6
"""With fewer, the interval of a median has no bounds."""
_T = {
    0.95: (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365),
    0.995: (127.321, 14.089, 7.453, 5.598, 4.773, 4.317, 4.029),
}
"""Two-sided quantiles of Student's t for 1, 2, ... degrees of freedom, by confidence."""
_LARGEST_LOG = 700.0
"""What is larger, as bounds of few workers may be, has no power of e that is a number."""


@dataclass(frozen=True)
class Interval:
    """An estimate and the bounds of its interval, of 95 % where nothing else is said."""

    value: float
    low: float
    high: float

    @property
    def relative_width(self) -> float:
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


def over_workers(
    values: Sequence[Sequence[float]], confidence: float = 0.95, *, differ: float = 0.0
) -> Interval:
    """The interval of a quantity that differs from worker to worker; one list of values for each.

    Of one worker it is `median_interval`. Of several it is Student's t interval of the logarithms
    of their medians, which covers what differs between workers as well as within (Student, The
    probable error of a mean, Biometrika 6, 1908; quantiles: NIST/SEMATECH e-Handbook, 1.3.6.7.2).
    It is never narrower than that of the median of all values. `confidence`: 0.95 or 0.995.
    `differ`: the share by which it is made wider at both ends.
    """
    if len(values) == 1:
        alone = median_interval(values[0], confidence)
        return Interval(alone.value, alone.low / (1 + differ), alone.high * (1 + differ))
    logs = [math.log(median(each)) for each in values]
    pooled = median_interval([value for each in values for value in each], confidence)
    half = _T[confidence][len(logs) - 2] * stdev(logs) / math.sqrt(len(logs))
    within = math.log(pooled.high / pooled.low) / 2 if pooled.low > 0 else math.inf
    half = max(half, within) + math.log1p(differ)
    middle = fmean(logs)
    high = math.exp(middle + half) if middle + half < _LARGEST_LOG else math.inf
    return Interval(math.exp(middle), math.exp(middle - half), high)


def speedup_verdict(
    ratios: Sequence[Sequence[float]],
    margin: float,
    differ: tuple[float, float] = (0.0, 0.0),
    within: float = VERDICT_CONFIDENCE,
) -> tuple[Verdict, Interval]:
    """What paired ratios, baseline over candidate, say of the speedup, and the interval that goes
    with it; one list for each worker.

    `faster` and `slower`, if all of their 99.5 % interval (`over_workers`) lies beyond the margin
    on one side of 1; `same`, if all of their 95 % interval lies within twice the margin, which is
    a test of equivalence (Schuirmann, J. Pharmacokinetics and Biopharmaceutics 15, 1987). These
    three go with the 95 % interval, which agrees with them. Else `unclear`, with the interval that
    left it so, the margin included: it holds 1.

    The margin is what two equal kernels may differ by for reasons that are no merit of theirs
    (where their processes' memory happened to lie). It and the higher confidence keep the share of
    equal pairs that are called faster or slower under 1 %, although the sampling stops as soon as
    the 95 % interval is narrow, which favours lucky narrow ones (`docs/timing.md`). `differ`: by
    how much the 95 % and the 99.5 % interval of one pair of workers are made wider at both ends.
    `within`: the confidence of the latter before that, 0.95 where pairs differ by far more.
    """
    likely = over_workers(ratios, differ=differ[0])
    sure = over_workers(ratios, within, differ=max(margin, differ[1]))
    return verdict_of(sure, likely, margin)


def verdict_of(sure: Interval, likely: Interval, margin: float) -> tuple[Verdict, Interval]:
    """`sure` is the interval with the higher confidence, the margin included."""
    if sure.low > 1.0:
        return Verdict.FASTER, likely
    if sure.high < 1.0:
        return Verdict.SLOWER, likely
    if 1.0 / (1.0 + 2 * margin) <= likely.low and likely.high <= 1.0 + 2 * margin:
        return Verdict.SAME, likely
    return Verdict.UNCLEAR, sure
