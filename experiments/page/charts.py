"""The page's charts as numbers: best so far against what was spent, and fast_p over p."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from experiments.analysis.interval import interval_of
from experiments.analysis.measures import FAST_0, FAST_1, KEPT, Measure
from experiments.analysis.outcomes import Outcomes
from experiments.analysis.statistics import Estimate, Resamples
from experiments.page.page_data import Axis, Chart, CurveLine

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

Condition = Sequence[Outcomes]
"""The seeds of one condition, over the same problems; of runs without a study, one run."""

AXES: dict[Axis, str] = {
    "calls": "calls a problem",
    "tokens": "tokens a problem",
    "cost_usd": "dollars a problem",
    "seconds_wall": "wall seconds a problem",
    "seconds_device": "device seconds a problem",
}
POINTS = 60
THRESHOLDS = 120


def charts(conditions: Sequence[Condition]) -> Iterator[Chart]:
    """Every chart that has something to show: dollars only where some were spent."""
    for measure in (KEPT, FAST_1, FAST_0):
        for axis, axis_label in AXES.items():
            lines = tuple(
                line
                for place, seeds in enumerate(conditions)
                if (line := _curve(place, seeds, measure, axis)) is not None
            )
            if lines:
                yield Chart(
                    figure=measure.key,
                    label=measure.label,
                    unit=measure.unit,
                    axis=axis,
                    axis_label=axis_label,
                    lines=lines,
                )
    if conditions:
        yield _fast_p(conditions)


def _curve(place: int, seeds: Condition, measure: Measure, axis: Axis) -> CurveLine | None:
    """The mean over seeds of each problem, then over problems. None: the amount is unknown or 0."""
    if axis == "calls":
        calls = max(seed.calls for seed in seeds)
        tables = [_widened(measure.table(seed), calls) for seed in seeds]
        x = np.arange(1.0, calls + 1)
    else:
        spent = [seed.spent[axis].cumsum(axis=1) for seed in seeds]
        # Further on some problem would have no more calls.
        end = min(float(each[:, -1].min()) for each in spent)
        if not end > 0:
            return None
        x = np.linspace(0, end, POINTS)
        tables = [
            _at(measure.table(seed), each, x) for seed, each in zip(seeds, spent, strict=True)
        ]
    table = np.mean(tables, axis=0)
    return _line(place, x, measure.estimates(table, Resamples.of(len(table))))


def _widened(table: FloatArray, calls: int) -> FloatArray:
    """A seed that made fewer calls stays where it ended."""
    return np.pad(table, ((0, 0), (0, calls - table.shape[1])), mode="edge")


def _at(table: FloatArray, spent: FloatArray, levels: FloatArray) -> FloatArray:
    """The table, shape (problems, calls), at each amount spent, shape (problems, levels)."""
    done = (spent[:, None, :] <= levels[None, :, None]).sum(axis=2)
    # Before the first call there is no kernel: a share of 0, and the logarithm of 1.
    before = np.concatenate([np.zeros((len(table), 1)), table], axis=1)
    return np.asarray(np.take_along_axis(before, done, axis=1))


def _fast_p(conditions: Sequence[Condition]) -> Chart:
    best = np.concatenate([seed.best[:, -1] for seeds in conditions for seed in seeds])
    low = float(min([0.8, *best[best > 0]])) / 1.1
    levels = np.geomspace(low, max(2.2, 1.15 * float(best.max())), THRESHOLDS)
    lines = []
    for place, seeds in enumerate(conditions):
        hits = np.mean(
            [np.stack([s.faster(p)[:, -1] for p in (0.0, *levels[1:])], axis=1) for s in seeds],
            axis=0,
        )
        lines.append(_line(place, levels, FAST_0.estimates(hits, Resamples.of(len(hits)))))
    return Chart(
        figure="fast_p",
        label="fast_p: correct, and more than p times as fast as eager",
        unit="share",
        axis="p",
        axis_label="p, times as fast as eager (at the left end: correct, however slow)",
        lines=tuple(lines),
    )


def _line(place: int, x: FloatArray, curve: Sequence[Estimate]) -> CurveLine:
    found = [interval_of(estimate) for estimate in curve]
    known = [(at, each) for at, each in zip(x.tolist(), found, strict=True) if each is not None]
    return CurveLine(
        condition=place,
        x=tuple(round(at, 6) for at, _ in known),
        value=tuple(each.value for _, each in known),
        low=tuple(each.low for _, each in known),
        high=tuple(each.high for _, each in known),
    )
