"""How large a study would have to be: sizes at which a difference is found with a chance of 80 %.

Formulas for paired differences d, two-sided at level a, with z the normal quantiles:

- A mean of differences with standard deviation s: n = ((z(1-a/2) + z(0.8)) s / d)^2 + z(1-a/2)^2/2
  (Guenther 1981, The American Statistician 35:243; the last term stands for Student's t).
- Shares of one seed, of which two conditions differ on a share q of problems:
  n = (z(1-a/2) sqrt(q) + z(0.8) sqrt(q - d^2))^2 / d^2 (Connor 1987, Biometrics 43:207), with the
  continuity correction n/4 (1 + sqrt(1 + 4 / (n d)))^2, since the exact test is discrete.
- With k seeds the variance of a problem's difference is that between problems plus that over seeds
  over k; both come from a one-way analysis of variance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from experiments.analysis.statistics import FEWEST, LEVEL

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

POWER = 0.8
MOST = 100_000
"""A study of more problems is no answer."""


@dataclass(frozen=True)
class Spread:
    """How paired differences vary."""

    between: float
    """Variance between problems, beyond what the seeds explain."""
    within: float | None
    """Variance of one seed's difference within a problem; None: there is one seed."""
    discordant: float | None
    """Share of problems on which two conditions differ; None where that says not all: the outcome
    is no share, or there are several seeds."""

    @classmethod
    def of(cls, differences: FloatArray, *, shares: bool = False) -> Spread:
        """From B minus A, shape (problems, seeds), of at least two problems."""
        problems, seeds = differences.shape
        total = float(differences.mean(axis=1).var(ddof=1))
        if seeds == 1:
            discordant = float(np.count_nonzero(differences)) / problems if shares else None
            return cls(total, None, discordant)
        within = float(differences.var(axis=1, ddof=1).mean())
        return cls(max(total - within / seeds, 0.0), within, None)

    def variance(self, seeds: int) -> float:
        """Of a problem's difference, the mean over `seeds`."""
        return self.between + (self.within or 0.0) / seeds


def problems_needed(
    spread: Spread, difference: float, *, seeds: int, level: float = 1 - LEVEL
) -> int | None:
    """Problems, each with `seeds` seeds, to find `difference` with a chance of `POWER`.

    None: more than `MOST`, or there is no difference. Without any spread `FEWEST` is enough.
    """
    size = abs(difference)
    if size == 0:
        return None
    a, b = _quantiles(level)
    if spread.discordant is not None:
        q = max(spread.discordant, size)
        plain = (a * math.sqrt(q) + b * math.sqrt(max(q - size**2, 0.0))) ** 2 / size**2
        found = plain / 4 * (1 + math.sqrt(1 + 4 / (plain * size))) ** 2
    else:
        found = (a + b) ** 2 * spread.variance(seeds) / size**2 + a**2 / 2
    needed = max(math.ceil(found), FEWEST)
    return needed if needed <= MOST else None


def seeds_needed(
    spread: Spread, difference: float, *, problems: int, level: float = 1 - LEVEL
) -> int | None:
    """Seeds of each of `problems` problems for the same. None: no number would do, more than
    `MOST`, or the variance over seeds is not known."""
    if spread.within is None or difference == 0:
        return None
    a, b = _quantiles(level)
    room = (problems - a**2 / 2) * difference**2 / (a + b) ** 2 - spread.between
    if room <= 0 or problems < FEWEST:
        return None
    needed = max(math.ceil(spread.within / room), 1)
    return needed if needed <= MOST else None


def _quantiles(level: float) -> tuple[float, float]:
    normal = NormalDist()
    return normal.inv_cdf(1 - level / 2), normal.inv_cdf(POWER)
