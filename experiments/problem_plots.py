"""Pictures of runs problem by problem: the best kernel of each."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.analysis.caption import caption
from experiments.analysis.label import conditions, run_labels
from experiments.analysis.outcomes import outcomes
from experiments.analysis.run_report import problem_report
from experiments.plot_style import (
    INK,
    line_styles,
    ratio_ticks,
    styled_figure,
    write_caption,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MARKERS = "oDs^vP"


def best_by_problem(turns: pd.DataFrame) -> Figure:
    """A row a problem, a mark a run: the speedup of its best correct kernel over eager and the
    95 % interval of that measurement, by the second verdict where there is one.

    Rows are ordered by the highest of these. A cross at the left: the run has no correct kernel.
    Problems that no run solved are left out, and the caption counts them.
    """
    from matplotlib.lines import Line2D

    labels = run_labels(turns)
    solved = {
        (path, problem): best
        for (path, problem), part in turns.groupby(["path", "problem"], sort=False)
        if (best := problem_report(part).speedup) is not None
    }
    highest = {
        problem: max(
            (solved[path, problem].value for path in labels if (path, problem) in solved), default=0
        )
        for problem in turns["problem"].unique()
    }
    rows = sorted((name for name in highest if highest[name] > 0), key=lambda name: -highest[name])
    with styled_figure(7.2, 0.13 * len(rows) * max(2, len(labels)) + 1.6) as figure:
        axes = figure.subplots()
        axes.set_xscale("log")
        low = min([0.8, *(each.low or each.value for each in solved.values())]) / 1.15
        high = max([1.3, *(each.high or each.value for each in solved.values())])
        axes.set_xlim(low / (high / low) ** 0.06, high * 1.15)
        axes.axvline(1, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
        places = (np.arange(len(labels)) - (len(labels) - 1) / 2) * 0.7 / len(labels)
        handles = []
        for (path, label), place, marker, style in zip(
            labels.items(), places, cycle(MARKERS), line_styles(len(labels)), strict=False
        ):
            look: dict[str, Any] = {"color": style.colour, "markersize": 4.5}
            handles.append(Line2D([], [], marker=marker, linestyle="", label=label, **look))
            for row, problem in enumerate(rows):
                best = solved.get((path, problem))
                if best is None:
                    axes.plot(low, row + place, "x", **look)
                else:
                    ends = [best.low or best.value, best.high or best.value]
                    axes.plot(ends, [row + place] * 2, "|-", linewidth=1.3, **look)
                    axes.plot(best.value, row + place, marker, zorder=3, **look)
        axes.set_yticks(range(len(rows)), rows)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.grid(axis="y", visible=False)
        ratio_ticks(axes, "x")
        axes.set_xlabel("speedup of the best kernel over eager")
        figure.legend(handles=handles, loc="outside upper left", ncols=3)
        says = ["Marks: the best kernel and the 95 % interval of its measurement."]
        if any((path, problem) not in solved for path in labels for problem in rows):
            says.append("Crosses: no correct kernel.")
        if len(rows) < len(highest):
            says.append(f"Not shown: {len(highest) - len(rows)} that no run solved.")
        write_caption(figure, caption(turns, *says))
        return figure


def best_by_condition(turns: pd.DataFrame) -> Figure:
    """A row a problem, a column a condition: the speedup over eager of the best correct kernel, by
    the second verdict where there is one; the geometric mean over the seeds.

    A run without a faster kernel counts as 1, because there one keeps eager. Rows are ordered by
    the highest figure. Shade: the logarithm of the figure over the highest one of its row.
    """
    parts = conditions(turns)
    rows = list(dict.fromkeys(turns["problem"]))
    columns = [_kept(part) for _, part in parts]
    table = np.array([[kept.get(problem, np.nan) for kept in columns] for problem in rows])
    highest = np.nanmax(table, axis=1)
    order = np.argsort(-highest, kind="stable")
    table, highest = table[order], highest[order]
    with styled_figure(2.6 + 0.85 * len(parts), 0.24 * len(rows) + 1.9) as figure:
        axes = figure.subplots()
        behind = np.log(table / highest[:, None])
        axes.imshow(behind, cmap="Blues", vmin=np.log(0.5), vmax=0.7, aspect="auto")
        for (row, column), value in np.ndenumerate(table):
            is_best = value == highest[row] > 1
            axes.text(
                column, row, "-" if np.isnan(value) else f"{value:.2f}",
                ha="center", va="center", fontsize=8.5, weight="bold" if is_best else "normal",
            )  # fmt: skip
        axes.set_xticks(
            range(len(parts)),
            [name for name, _ in parts],
            rotation=30,
            ha="left",
            rotation_mode="anchor",
        )
        axes.xaxis.tick_top()
        axes.set_yticks(range(len(rows)), [rows[place] for place in order])
        axes.grid(visible=False)
        axes.tick_params(length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)
        says = [
            "Figures: speedup of the best kernel over eager, at least 1; geometric mean over the"
            " seeds, no intervals. Bold: the highest of a row; the darker, the nearer to it."
        ]
        if turns.groupby("path")["problem"].nunique().min() < len(rows):
            says.append("Not every problem has all seeds; a dash: it has none.")
        write_caption(figure, caption(turns, *says))
        return figure


def _kept(turns: pd.DataFrame) -> dict[str, float]:
    """By problem, under one condition."""
    logs: dict[str, list[float]] = {}
    for _, run in turns.groupby("path", sort=False):
        reached = outcomes(run)
        for problem, kept in zip(reached.problems, reached.kept[:, -1], strict=True):
            logs.setdefault(problem, []).append(float(np.log(kept)))
    return {problem: float(np.exp(np.mean(each))) for problem, each in logs.items()}
