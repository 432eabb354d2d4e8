"""Pictures of a study: its conditions and contrasts at equal budgets, and what followed advice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from experiments.analysis.advice_totals import RuleTotal, total_advice
from experiments.analysis.caption import counted, setting
from experiments.analysis.equal_budget import NOUNS, Currency
from experiments.analysis.measures import KEPT
from experiments.analysis.statistics import Estimate
from experiments.plot_style import (
    BLUE,
    FAINT,
    INK,
    MOST_BANDS,
    VERMILLION,
    LineStyle,
    band,
    line_styles,
    percent,
    ratio_ticks,
    styled_figure,
    write_caption,
)
from experiments.runs import load_runs
from problems.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from experiments.study.curves import Curve
    from experiments.study.study_report import StudyReport


def at_equal_budgets(
    report: StudyReport,
    currencies: Sequence[Currency] = ("calls", "tokens", "seconds_device"),
    conditions: Sequence[str] = (),
) -> Figure:
    """Geometric mean of the best so far against what a problem may spend, a column a currency.

    Above, a line a condition; below, a line a contrast of the plan, paired over problems, over
    the dashed line if the first named is ahead. `conditions`: only these and contrasts among them.
    Raises `UsageError` where one is not in the study, where the study has no curve in any of
    `currencies`, or several models.
    """
    from matplotlib.ticker import MaxNLocator

    kept = [curve for curve in report.curves if curve.figure == KEPT.key]
    if conditions:
        there = {curve.condition for curve in kept}
        if absent := [name for name in conditions if name not in there]:
            raise UsageError(f"no condition {absent[0]!r}; there are {', '.join(sorted(there))}")
        kept = [c for c in kept if {c.condition, c.over or c.condition} <= {*conditions}]
    if len({curve.model for curve in kept}) > 1:
        raise UsageError("the study has several models; draw the curves of one of them yourself")
    known = [name for name in currencies if any(curve.currency == name for curve in kept)]
    if not known:
        raise UsageError(f"the study spent no {', '.join(NOUNS[name] for name in currencies)}")
    rows = [[curve for curve in kept if not curve.over], [curve for curve in kept if curve.over]]
    bands = max(sum(c.currency == known[0] for c in row) for row in rows) <= MOST_BANDS
    with styled_figure(3.1 * len(known) + 0.6, 5.8 if rows[1] else 3.4) as figure:
        shape = (2 if rows[1] else 1, len(known))
        grid = figure.subplots(*shape, sharex="col", sharey="row", squeeze=False)
        for column, currency in enumerate(known):
            # Contrasts have other colours than conditions.
            for row, after, axes in zip(rows, (0, 3), grid[:, column], strict=False):
                chosen = [curve for curve in row if curve.currency == currency]
                for style, curve in zip(line_styles(len(chosen), after), chosen, strict=True):
                    _draw(axes, curve, style if bands else replace(style, shade=0.0))
                axes.set_yscale("log")
            if rows[1]:
                axes.axhline(1, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
            axes.set_xlabel(f"{NOUNS[currency]} a problem")
            axes.xaxis.set_major_locator(MaxNLocator(8 if currency == "calls" else 4, integer=True))
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
        words = ("speedup, at least 1", "ratio, paired")
        for axes, label in zip(grid[:, 0], words, strict=False):
            axes.set_ylabel(label)
            ratio_ticks(axes)
        lines = [line for axes in grid[:, 0] for line in axes.lines if line.get_label()[0] != "_"]
        figure.legend(handles=lines, loc="outside upper left", ncols=2)
        write_caption(figure, _budget_caption(report, bands=bands))
        return figure


def _draw(axes: Axes, curve: Curve, style: LineStyle) -> None:
    label = f"{curve.condition} over {curve.over}" if curve.over else curve.condition
    points = [
        Estimate(
            p.value, p.value if p.low is None else p.low, p.value if p.high is None else p.high
        )
        for p in curve.points
    ]
    band(axes, np.array([point.spent for point in curve.points]), points, style, label=label)


def _budget_caption(report: StudyReport, *, bands: bool) -> str:
    problems, seeds = report.conditions[0].problems, report.conditions[0].seeds
    models, devices = report.circumstances
    says = "Bands: 95 % bootstrap intervals over problems, point by point."
    return (
        f"n = {counted(problems, 'problem')}, {counted(seeds, 'seed')}. Best so far by the figures"
        " of the search, without second verdicts; no correct kernel counts as 1."
        f" {says if bands else 'No bands: they would hide one another.'}"
        f" Kernels by {models}; {devices}."
    )


def advice_outcomes(paths: Sequence[Path]) -> Figure:
    """What came of each rule of advice that was followed in the runs at `paths`: how often its
    figure moved as predicted, and how the time changed beside what was predicted.

    Raises `UsageError` where no advice was followed.
    """
    totals = total_advice(paths)
    rules = [rule for rule in totals.rules if rule.followed]
    if not rules:
        raise UsageError("no advice was followed in these runs, so there is nothing to draw")
    with styled_figure(8.2, 0.36 * len(rules) + 1.9) as figure:
        left, right = figure.subplots(1, 2, sharey=True)
        for row, rule in enumerate(rules):
            _draw_rule(left, right, row, rule)
        left.set_yticks(range(len(rules)), [f"{rule.rule} ({rule.followed})" for rule in rules])
        left.set_ylim(len(rules) - 0.5, -0.5)
        left.set_xlim(-0.03, 1.03)
        left.set_title("metric moved as predicted")
        right.axvline(0, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
        right.set_title("change of the time")
        for axes in (left, right):
            axes.xaxis.set_major_formatter(percent)
            axes.grid(axis="y", visible=False)
        handles, labels = right.get_legend_handles_labels()
        named = dict(zip(labels, handles, strict=True))
        figure.legend(named.values(), named.keys(), loc="outside upper right", ncols=2)
        followed = sum(rule.followed for rule in rules)
        turns = load_runs(paths)
        write_caption(
            figure,
            f"n = {followed} pieces of advice in prompts whose kernels were profiled (in brackets,"
            f" by rule), on {counted(turns['problem'].nunique(), 'problem')}. Left: share and"
            " Wilson's 95 % interval. Right: median, without an interval. Turns of a problem are"
            f" not independent. {setting(turns)}.",
        )
        return figure


def _draw_rule(left: Axes, right: Axes, row: int, rule: RuleTotal) -> None:
    rate = rule.hit_rate
    if rate is not None:
        low, high = rate.low or 0.0, 1.0 if rate.high is None else rate.high
        left.errorbar(
            rate.value, row, xerr=[[rate.value - low], [high - rate.value]], fmt="o", color=BLUE,
            markersize=5, capsize=2.5,
        )  # fmt: skip
    if rule.predicted_gain is not None and rule.time_change is not None:
        ends = [-rule.predicted_gain, rule.time_change]
        right.plot(ends, [row, row], color=FAINT, linewidth=1.2, zorder=1)
        right.plot(ends[0], row, "D", color="white", markeredgecolor=VERMILLION, label="predicted")
        right.plot(ends[1], row, "o", color=BLUE, label="measured")
