"""Best so far at equal budgets, for the conditions of a study."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from evaluator.record import Record
from experiments.analysis.arrays import FloatArray
from experiments.analysis.equal_budget import UNITS, Currency, spent_by_call
from experiments.analysis.measures import BY_CALL, Measure, Unit, measure_of
from experiments.analysis.statistics import Estimate, Resamples, finite
from experiments.study.cell_results import ConditionResults, values_at
from experiments.study.plan import Condition, Contrast

POINTS = 25


class CurvePoint(Record):
    spent: float
    """Budget of each problem, in the curve's currency."""
    value: float
    low: float | None
    """Of the 95 % band, point by point."""
    high: float | None
    ended: float
    """Share of problems (and seeds) whose calls were all made by then: from there on the curve is
    flat for want of calls."""


class Curve(Record):
    """Best so far against what a problem may spend. By the figures of the search, at every point:
    only the last best kernel was judged again."""

    model: str
    condition: str
    over: str = ""
    """The condition that it is compared with: values are differences, or quotients for a ratio,
    paired over problems. Empty: they are the figure itself."""
    figure: str
    label: str
    unit: Unit
    currency: Currency
    problems: int
    seeds: int
    points: tuple[CurvePoint, ...]
    """At the same budgets for all conditions of a model, so that they can be compared."""

    @property
    def name(self) -> str:
        return f"{self.condition} over {self.over}" if self.over else self.condition

    @property
    def spent(self) -> tuple[float, ...]:
        return tuple(point.spent for point in self.points)


def curves_of(
    conditions: Sequence[ConditionResults],
    problems: Sequence[str],
    contrasts: Sequence[Contrast],
    *,
    seed: int = 0,
) -> Iterator[Curve]:
    """For one model: each condition, and each contrast by its own outcome, in every currency that
    was spent and is known. The bands come from the same resamples of problems."""
    resamples = Resamples.of(len(problems), seed=seed)
    model = conditions[0].model
    runs = {each.condition: each.outcomes(problems, search=True) for each in conditions}

    def curve(
        condition: str,
        measure: Measure,
        currency: Currency,
        points: tuple[CurvePoint, ...],
        over: str = "",
    ) -> Curve:
        return Curve(
            model=model,
            condition=condition,
            over=over,
            figure=measure.key,
            label=measure.label,
            unit=measure.unit,
            currency=currency,
            problems=len(problems),
            seeds=len(runs[condition]),
            points=points,
        )

    for currency in UNITS:
        # Shape (problems, seeds), by condition.
        totals = {
            name: np.stack([spent_by_call(each, currency)[:, -1] for each in seeds], axis=1)
            for name, seeds in runs.items()
        }
        most = max(float(total.max()) for total in totals.values())
        if not most > 0 or any(np.isnan(total).any() for total in totals.values()):
            continue
        budgets = np.arange(1, most + 1) if currency == "calls" else _grid(most)
        ended = {
            name: (total[:, None, :] <= budgets[None, :, None] * (1 + 1e-9)).mean(axis=(0, 2))
            for name, total in totals.items()
        }
        for measure in BY_CALL:
            for name, seeds in runs.items():
                table = values_at(measure, seeds, currency, budgets).mean(axis=2)
                points = _points(budgets, measure.estimates(table, resamples), ended[name])
                yield curve(name, measure, currency, points)
        for a, b, measure in _compared(contrasts, runs):
            first, second = (
                values_at(measure, runs[name], currency, budgets).mean(axis=2) for name in (a, b)
            )
            found = [measure.in_unit(each) for each in resamples.means(second - first)]
            points = _points(budgets, found, np.maximum(ended[a], ended[b]))
            yield curve(b, measure, currency, points, over=a)


def _grid(most: float) -> FloatArray:
    return np.linspace(0.0, most, POINTS + 1)[1:]


def _compared(
    contrasts: Sequence[Contrast], conditions: Collection[str]
) -> Iterator[tuple[str, str, Measure]]:
    asked = {
        (str(Condition.parse(each.a)), str(Condition.parse(each.b)), each.outcome): None
        for each in contrasts
    }
    for a, b, outcome in asked:
        measure = measure_of(outcome)
        if a in conditions and b in conditions and measure.absent == "never":
            yield a, b, measure


def _points(
    budgets: FloatArray, found: Sequence[Estimate], ended: FloatArray
) -> tuple[CurvePoint, ...]:
    return tuple(
        CurvePoint(
            spent=float(spent),
            value=each.value,
            low=finite(each.low),
            high=finite(each.high),
            ended=float(share),
        )
        for spent, each, share in zip(budgets, found, ended, strict=True)
    )
