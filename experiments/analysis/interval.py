"""A figure with its interval, as JSON tells it."""

from __future__ import annotations

import math

from pydantic import BaseModel, ConfigDict

from experiments.analysis.statistics import Estimate


class Interval(BaseModel):
    """A figure with its 95 % interval; a bound is None where there is none."""

    model_config = ConfigDict(frozen=True)

    value: float
    low: float | None
    high: float | None


def interval_of(estimate: Estimate) -> Interval | None:
    """None where the figure is unknown (NaN)."""
    if math.isnan(estimate.value):
        return None
    if estimate.low == 0.0 and estimate.high == math.inf:  # a ratio of which nothing is known
        return Interval(value=estimate.value, low=None, high=None)
    low, high = (bound if math.isfinite(bound) else None for bound in (estimate.low, estimate.high))
    return Interval(value=estimate.value, low=low, high=high)
