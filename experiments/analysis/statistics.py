"""Intervals and tests over problems: what a difference between two runs is worth.

Every figure that we compare is a mean over problems (of 0 or 1 for a share, of logarithms for a
geometric mean), so one bootstrap serves all: problems are drawn with replacement, the same draws
for both runs, since what makes a problem hard makes it hard for both. The randomness of the models
lies within: a problem's value is one draw of it, or the mean of several where there are seeds.

Seeds are not drawn again within a problem. Values of problems differ by their seeds, too, so that
drawing problems with all their seeds covers both (Davison and Hinkley 1997, section 3.8). Drawing
both counts the seeds twice: with 12 problems and 3 seeds it covered 95 to 99 %, and this 94 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from evaluator.record import Record
from experiments.analysis.arrays import BoolArray, FloatArray

LEVEL = 0.95
POWER = 0.8
"""The share of studies that must find a difference before we say that it can be told."""
DRAWS = 10_000
FEWEST = 6
"""Problems that must differ before anything can be clear: with five, even 5 : 0 happens to two
equal runs in 1 of 16 comparisons (two-sided sign test)."""


@dataclass(frozen=True)
class Estimate:
    value: float
    low: float
    high: float

    def exp(self) -> Estimate:
        return Estimate(*(float(np.exp(value)) for value in (self.value, self.low, self.high)))


class Interval(Record):
    """A figure with its 95 % interval; a bound is None where there is none."""

    value: float
    low: float | None
    high: float | None


def interval_of(estimate: Estimate) -> Interval | None:
    """None where the figure is unknown (NaN)."""
    if math.isnan(estimate.value):
        return None
    if estimate.low == 0.0 and estimate.high == math.inf:  # a ratio of which nothing is known
        return Interval(value=estimate.value, low=None, high=None)
    return Interval(value=estimate.value, low=finite(estimate.low), high=finite(estimate.high))


def finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def whole(count: float) -> int | None:
    return int(count) if math.isfinite(count) else None


@dataclass(frozen=True)
class Resamples:
    """How often each problem is drawn: the same draws for every figure of a comparison."""

    counts: FloatArray
    """Whole numbers, shape (draws, problems); each row sums to the number of problems."""
    seed: int

    @classmethod
    @lru_cache(maxsize=4)
    def of(cls, problems: int, *, seed: int = 0, draws: int = DRAWS) -> Resamples:
        """Draw `problems` of `problems` with replacement, `draws` times.

        The last ones are kept: a report asks for the same draws for each of its figures.
        """
        if problems < 1:
            raise ValueError("a bootstrap needs at least one problem")
        generator = np.random.default_rng(seed)
        chances = np.full(problems, 1.0 / problems)
        counts = generator.multinomial(problems, chances, size=draws).astype(float)
        counts.setflags(write=False)
        return cls(counts, seed)

    def mean(self, values: FloatArray) -> Estimate:
        """The mean of `values`, shape (problems,), with its interval; see `means`."""
        return self.means(np.asarray(values, dtype=float)[:, None])[0]

    def means(self, values: FloatArray) -> list[Estimate]:
        """The mean of each column of `values`, shape (problems, columns), with its interval.

        Percentile bootstrap, its tails widened for few problems as Hesterberg proposes (2015,
        arXiv 1411.5279, "expanded percentile"): plain percentiles cover 86 % at 6 problems and
        92 % at 12, these 94 and 95 %. One problem alone has no spread: its interval is infinite.
        """
        table = np.asarray(values, dtype=float)
        problems = table.shape[0]
        centres = table.mean(axis=0)
        if problems == 1:
            return [Estimate(float(centre), -math.inf, math.inf) for centre in centres]
        tail = tail_share(problems)
        drawn = self.counts @ table / problems
        low, high = np.quantile(drawn, [tail, 1 - tail], axis=0)
        return [
            # Rounding may put the mean of equal values a hair beside them.
            Estimate(float(c), float(min(a, c)), float(max(b, c)))
            for c, a, b in zip(centres, low, high, strict=True)
        ]

    def quotient(self, spent: FloatArray, reached: FloatArray) -> Estimate:
        """The sum of `spent` over the sum of `reached`, both of shape (problems,) and at least 0.

        NaN where nothing is reached. An end of the interval is infinite where so many resamples
        reach nothing.
        """
        if not reached.sum():
            return Estimate(math.nan, math.nan, math.nan)
        value = float(spent.sum() / reached.sum())
        if len(spent) == 1:
            return Estimate(value, 0.0, math.inf)
        hits = self.counts @ reached
        sums = np.divide(self.counts @ spent, hits, out=np.full(len(hits), np.inf), where=hits > 0)
        ordered, cut = np.sort(sums), int(tail_share(len(spent)) * len(sums))
        low, high = ordered[cut], ordered[-1 - cut]
        return Estimate(value, float(min(low, value)), float(max(high, value)))

    def share(self, hits: BoolArray | FloatArray) -> Estimate:
        """The share of problems that `hits`, shape (problems,), is true for; see `shares`."""
        return self.shares(np.asarray(hits, dtype=float)[:, None])[0]

    def shares(self, hits: BoolArray | FloatArray) -> list[Estimate]:
        """The share of true values in each column of `hits`, shape (problems, columns); the mean
        where these are shares themselves.

        Where all problems agree there is nothing to draw differently, and a bootstrap would call
        12 of 12 certain: there the interval is Wilson's.
        """
        table = np.asarray(hits, dtype=float)
        estimates = self.means(table)
        return [
            wilson(round(estimate.value * len(table)), len(table))
            if estimate.value in (0.0, 1.0)
            else Estimate(estimate.value, max(estimate.low, 0.0), min(estimate.high, 1.0))
            for estimate in estimates
        ]


def tail_share(problems: int) -> float:
    """The share of resamples to leave out at either end, for an interval at `LEVEL`.

    Phi(-sqrt(n / (n - 1)) * t), with Student's t quantile at n - 1 degrees of freedom.
    """
    spread = math.sqrt(problems / (problems - 1)) * student_t(0.5 + LEVEL / 2, problems - 1)
    return NormalDist().cdf(-spread)


def student_t(chance: float, freedom: int) -> float:
    """Quantile of Student's t: exact for 1 and 2 degrees of freedom, else the expansion in
    1/freedom of Abramowitz and Stegun 26.7.5 (error below 0.02 at 3 degrees, 97.5 %)."""
    if freedom == 1:
        return math.tan(math.pi * (chance - 0.5))
    if freedom == 2:
        return (2 * chance - 1) * math.sqrt(2 / (4 * chance * (1 - chance)))
    z = NormalDist().inv_cdf(chance)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return math.fsum(term / freedom**power for power, term in enumerate(terms))


def wilson(hits: int, of: int) -> Estimate:
    """Wilson's interval of a share (1927): never of no width, and inside [0, 1]."""
    z = NormalDist().inv_cdf(0.5 + LEVEL / 2)
    share = hits / of
    centre = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z / (1 + z * z / of) * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return Estimate(share, max(0.0, min(centre - half, share)), min(1.0, max(centre + half, share)))


def sign_flip_chance(differences: FloatArray, *, seed: int = 0, draws: int = DRAWS) -> float:
    """How often two equal runs would differ by as much: the paired randomisation test.

    `differences`: shape (problems,). If neither run were better, each difference could as well
    have the other sign (Fisher 1935). Two-sided; all sign patterns where the differences are of one
    size (for shares of one seed: McNemar's exact test), or up to 13 differing problems; `draws`
    random ones above.
    """
    unequal = np.asarray(differences, dtype=float)
    unequal = unequal[unequal != 0]
    if unequal.size == 0:
        return 1.0
    if np.ptp(np.abs(unequal)) == 0:
        return _sign_test(int(np.count_nonzero(unequal > 0)), unequal.size)
    if unequal.size <= 13:
        patterns = np.arange(2**unequal.size)[:, None] >> np.arange(unequal.size) & 1
        extra = 0
    else:
        patterns = np.random.default_rng(seed).integers(0, 2, size=(draws, unequal.size))
        extra = 1
    sums = np.abs((2 * patterns - 1) @ unequal)
    observed = abs(unequal.sum())
    at_least = int(np.count_nonzero(sums >= observed * (1 - 1e-9)))
    return (at_least + extra) / (len(patterns) + extra)


def _sign_test(positive: int, of: int) -> float:
    """The two-sided binomial test of a half."""
    fewer = min(positive, of - positive)
    patterns = sum(math.comb(of, count) for count in range(fewer + 1))
    return min(1.0, float(2 * patterns / (1 << of)))


@dataclass(frozen=True)
class Difference:
    """B minus A over the same problems, and whether anything may be concluded from it."""

    estimate: Estimate
    chance: float
    """Of a difference at least as large between two equal runs (`sign_flip_chance`)."""
    differing: int
    higher: int = 0
    """Of these, how often B is higher."""
    effect: float | None = None
    """The mean over the standard deviation of the differences (Cohen's d_z); None: they are all
    the same."""
    deviation: float = 0.0
    """That standard deviation."""
    test: str = "sign-flip test"
    """What `chance` is of."""

    @property
    def sign(self) -> int:
        """1: B is clearly higher; -1: A is; 0: unclear.

        Clear asks for three things: zero outside the bootstrap interval, a chance below 5 %, and
        `FEWEST` differing problems. The bootstrap alone is too easily convinced by few problems:
        4 : 0 of 12 is outside its interval, and happens to equal runs in 1 of 8 comparisons.
        """
        if self.chance > 1 - LEVEL or self.differing < FEWEST:
            return 0
        return int(self.estimate.low > 0) - int(self.estimate.high < 0)


def difference(
    a: FloatArray, b: FloatArray, resamples: Resamples, *, shares: bool = False
) -> Difference:
    """Compare two runs by one value a problem, in the same order of problems.

    `shares`: the values are true or false, so that equal differences leave Wilson's interval.
    """
    paired = np.asarray(b, dtype=float) - np.asarray(a, dtype=float)
    estimate = resamples.mean(paired)
    if shares and np.isin(paired, (-1.0, 1.0)).all() and np.ptp(paired) == 0:
        sure = wilson(len(paired), len(paired))
        low, high = sorted((sure.low * paired[0], paired[0]))
        estimate = Estimate(float(paired[0]), float(low), float(high))
    elif shares and not paired.any():
        most = wilson(0, len(paired)).high
        estimate = Estimate(0.0, -most, most)
    deviation = float(paired.std(ddof=1)) if len(paired) > 1 else 0.0
    return Difference(
        estimate,
        sign_flip_chance(paired),
        int(np.count_nonzero(paired)),
        higher=int(np.count_nonzero(paired > 0)),
        effect=float(paired.mean()) / deviation if deviation > 1e-12 else None,
        deviation=deviation if deviation > 1e-12 else 0.0,
        test="McNemar's exact test"
        if shares and np.isin(paired, (-1.0, 0.0, 1.0)).all()
        else "sign-flip test",
    )


def tellable(deviation: float, problems: int, questions: int) -> float:
    """The mean difference that a paired comparison finds in `POWER` of all studies, at a level
    shared by `questions`. `deviation`: of the differences. The approximation of Guenther (1981)."""
    level, power = _quantiles(questions)
    return (level + power) * deviation / math.sqrt(max(problems - level**2 / 2, 1.0))


def problems_to_tell(least: float, deviation: float, questions: int) -> int:
    """How many problems make `least` `tellable`."""
    level, power = _quantiles(questions)
    needed = ((level + power) * deviation / least) ** 2 + level**2 / 2
    return max(FEWEST, math.ceil(needed))


def _quantiles(questions: int) -> tuple[float, float]:
    normal = NormalDist()
    return normal.inv_cdf(1 - (1 - LEVEL) / 2 / questions), normal.inv_cdf(POWER)


def holm(chances: Sequence[float]) -> list[float]:
    """Chances corrected for their number, in the same order: Holm's step-down method (1979)."""
    adjusted, least = [0.0] * len(chances), 0.0
    for rank, place in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        least = max(least, min(1.0, (len(chances) - rank) * chances[place]))
        adjusted[place] = least
    return adjusted
