"""The page's charts as numbers: best so far at equal budgets, and fast_p over p."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from experiments.analysis.equal_budget import NOUNS
from experiments.analysis.measures import FAST_0
from experiments.analysis.outcomes import Outcomes
from experiments.analysis.statistics import Resamples, interval_of
from experiments.page.page_data import Chart, CurveLine
from experiments.study.curves import Curve

THRESHOLDS = 120


def curve_charts(curves: Sequence[Curve], places: Mapping[tuple[str, str], int]) -> Iterator[Chart]:
    """One chart a figure and currency; `places` are those of the conditions, by model and name."""
    groups: dict[tuple[str, str, str], list[Curve]] = {}
    for curve in curves:
        groups.setdefault((curve.figure, curve.over, curve.currency), []).append(curve)
    for (figure, over, _), group in groups.items():
        first = group[0]
        yield Chart(
            figure=figure,
            over=over,
            label=first.label,
            unit=first.unit,
            axis=first.currency,
            axis_label=f"{NOUNS[first.currency]} a problem",
            lines=tuple(
                CurveLine(
                    condition=places[curve.model, curve.condition],
                    x=curve.spent,
                    value=tuple(point.value for point in curve.points),
                    low=tuple(point.low for point in curve.points),
                    high=tuple(point.high for point in curve.points),
                )
                for curve in group
            ),
        )


def fast_p_chart(conditions: Mapping[int, Sequence[Outcomes]]) -> Chart:
    """The share of problems that are faster than p, for every p; by condition, over its seeds."""
    best = np.concatenate([seed.best[:, -1] for seeds in conditions.values() for seed in seeds])
    low = float(min([0.8, *best[best > 0]])) / 1.1
    levels = np.geomspace(low, max(2.2, 1.15 * float(best.max())), THRESHOLDS)
    return Chart(
        figure="fast_p",
        label="fast_p: correct, and more than p times as fast as eager",
        over="",
        unit="share",
        axis="p",
        axis_label="p, times as fast as eager",
        lines=tuple(_fast_p(place, seeds, levels) for place, seeds in conditions.items()),
    )


def _fast_p(place: int, seeds: Sequence[Outcomes], levels: np.ndarray) -> CurveLine:
    steps = (0.0, *levels[1:])
    hits = np.mean([np.stack([s.faster(p)[:, -1] for p in steps], axis=1) for s in seeds], axis=0)
    found = FAST_0.estimates(hits, Resamples.of(len(hits)))
    bounds = [interval_of(estimate) for estimate in found]
    return CurveLine(
        condition=place,
        x=tuple(levels.tolist()),
        value=tuple(estimate.value for estimate in found),
        low=tuple(bound.low if bound else None for bound in bounds),
        high=tuple(bound.high if bound else None for bound in bounds),
    )
