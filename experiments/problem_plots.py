"""A picture of runs problem by problem: the best kernel of each, with its interval."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.analysis.caption import caption
from experiments.analysis.label import run_labels
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
