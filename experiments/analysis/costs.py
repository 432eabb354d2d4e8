"""What one solved, or one faster, problem took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict

from experiments.analysis.equal_budget import UNITS, Currency, spent_by_call
from experiments.analysis.interval import Interval, interval_of
from experiments.analysis.measures import Unit
from experiments.analysis.outcomes import Outcomes
from experiments.analysis.statistics import Resamples


class Costs(BaseModel):
    """One currency. Each figure is all that was spent over all that was reached: a ratio of sums
    over problems and seeds, with a bootstrap interval over problems."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    currency: Currency
    unit: Unit
    total: float | None
    """All that was spent, over problems and seeds. None: an amount is unknown."""
    per_correct: Interval | None
    """For each problem with a correct kernel. None: unknown, or there is none."""
    per_faster: Interval | None
    """For each problem with a correct kernel that is faster than eager."""


def costs_of(runs: Sequence[Outcomes], *, seed: int = 0) -> Iterator[Costs]:
    """Of `runs` of the same problems, one a seed; without currencies of which nothing was spent."""
    resamples = Resamples.of(len(runs[0].problems), seed=seed)
    for currency, unit in UNITS.items():
        spent = np.sum([spent_by_call(each, currency)[:, -1] for each in runs], axis=0)
        total = float(spent.sum())
        if total == 0:
            continue
        known = total == total
        correct, faster = (
            resamples.quotient(
                spent, np.sum([each.faster(p)[:, -1] for each in runs], axis=0, dtype=float)
            )
            for p in (0, 1)
        )
        yield Costs(
            currency=currency,
            unit=unit,
            total=total if known else None,
            per_correct=interval_of(correct) if known else None,
            per_faster=interval_of(faster) if known else None,
        )
