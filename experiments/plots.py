"""Pictures of runs, for notebooks and papers: each function returns a figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.analysis.equal_budget import NOUNS, Currency
from experiments.analysis.label import conditions
from experiments.analysis.measures import KEPT
from experiments.analysis.outcomes import Outcomes, outcomes
from experiments.page.charts import fast_p_chart
from experiments.plot_style import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    MOST_BANDS,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
    band,
    caption,
    line_styles,
    percent,
    ratio_ticks,
    setting,
    styled_figure,
    write_caption,
)
from problems.errors import UsageError
from tools.profiling.profile_facts import count_words

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    from experiments.study.curves import Curve

FAILURES = {
    "no_code": ("no code", "_", FAINT),
    "build_error": ("does not build", "s", VERMILLION),
    "runtime_error": ("crashes", "X", PURPLE),
    "timeout": ("too slow to judge", "h", INK),
    "incorrect": ("wrong", "v", ORANGE),
    "integrity": ("cheats", "*", INK),
}
"""Of each status but `correct`: its words, marker and colour."""
SPENT = {
    "seconds_model": ("model", PURPLE),
    "seconds_build": ("build", ORANGE),
    "seconds_judge": ("judge", BLUE),
    "seconds_profile": ("profile", GREEN),
}
BANDS = "Bands: 95 % bootstrap intervals over problems."
WIDEST_SHARED = 30.0
"""The widest ratio of speedups that panels still share an axis for."""


def trajectories(turns: pd.DataFrame) -> Figure:
    """One panel a problem of one run: each call's speedup with its interval, what failed and how,
    and the best so far as a step line.

    The speedups' axis is logarithmic, and the same in all panels unless one problem's speedups
    would press all others flat.
    """
    panels, columns = list(turns.groupby("problem", sort=False)), 2
    rows = -(-len(panels) // columns)
    low, high = _span(turns)
    shared = high / low < WIDEST_SHARED
    handles = _legend_of(turns)
    with styled_figure(4.6 * columns, 2.0 * rows + 0.8) as figure:
        grid = figure.subplots(rows, columns, sharex=True, sharey=shared, squeeze=False)
        for axes, (problem, calls) in zip(grid.flat, panels, strict=False):
            low, high = (low, high) if shared else _span(calls)
            _trajectory(axes, str(problem), calls, low, high, strip=len(handles) > 2)
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        for axes in grid[:, 0]:
            axes.set_ylabel("speedup over eager")
        for place in range(min(columns, len(panels))):
            lowest = grid[(len(panels) - 1 - place) // columns, place]
            lowest.set_xlabel("call")
            lowest.xaxis.set_tick_params(labelbottom=True)
        figure.legend(handles=handles, loc="outside upper left", ncols=len(handles))
        says = "Dots: speedup over eager with its interval; dashed: eager."
        write_caption(figure, caption(turns, f"Policy: {conditions(turns)[0][0]}.", says))
        return figure


def _span(turns: pd.DataFrame) -> tuple[float, float]:
    timed = turns[turns["speedup"].notna()]
    # An interval without end must not press everything else flat.
    lows = np.maximum(timed["speedup_low"], timed["speedup"] / 1.5)
    highs = np.minimum(timed["speedup_high"], timed["speedup"] * 1.5)
    return min([0.8, *lows]) / 1.1, max([1.3, *highs]) * 1.15


def _trajectory(
    axes: Axes, problem: str, calls: pd.DataFrame, low: float, high: float, *, strip: bool
) -> None:
    from matplotlib.ticker import MaxNLocator

    at = calls["call"] + 1
    good = calls["speedup"].notna()
    spread = np.abs(
        calls.loc[good, ["speedup_low", "speedup_high"]].to_numpy(dtype=float).T
        - calls.loc[good, "speedup"].to_numpy(dtype=float)
    )
    # Below the speedups, a strip for what has none.
    bottom, failures = low / (high / low) ** (0.2 * strip), low / (high / low) ** 0.1
    axes.set_yscale("log")
    axes.set_ylim(bottom, high)
    ratio_ticks(axes, above=low)
    if strip:
        axes.axhspan(bottom, low, color="#F4F4F4", zorder=0, linewidth=0)
    axes.axhline(1, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    axes.step(at, calls["best_so_far"], where="post", color=BLUE, alpha=0.45, linewidth=2.2)
    axes.errorbar(
        at[good], calls.loc[good, "speedup"], yerr=spread, fmt="o", color=BLUE, markersize=4.5,
        elinewidth=1.4, capsize=2.5, zorder=3,
    )  # fmt: skip
    for status, (_, marker, colour) in FAILURES.items():
        failed = calls["status"] == status
        axes.scatter(
            at[failed], np.full(int(failed.sum()), failures), marker=marker, color=colour, s=34,
            clip_on=False, zorder=3,
        )  # fmt: skip
    best = calls["best_so_far"].max()
    if best > 0:
        where = (float(at.max()), float(best))
        axes.annotate(
            f"{best:.2f}x", where, (5, 0), textcoords="offset points", va="center",
            color=BLUE, weight="bold", annotation_clip=False, zorder=4,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
        )  # fmt: skip
    axes.set_title(problem)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlim(0.7, None)


def _legend_of(turns: pd.DataFrame) -> list[Any]:
    from matplotlib.lines import Line2D

    seen = set(turns["status"])
    handles = [
        Line2D([], [], color=BLUE, marker="o", markersize=4.5, linestyle="", label="correct"),
        Line2D([], [], color=BLUE, alpha=0.45, linewidth=2.2, label="best so far"),
    ]
    return handles + [
        Line2D([], [], color=colour, marker=marker, linestyle="", label=words)
        for status, (words, marker, colour) in FAILURES.items()
        if status in seen
    ]


def at_equal_budgets(
    curves: Sequence[Curve],
    turns: pd.DataFrame,
    currencies: Sequence[Currency] = ("calls", "tokens", "answer_characters", "seconds_device"),
    only: Sequence[str] = (),
) -> Figure:
    """Geometric mean of the best so far against what a problem may spend, a column a currency.

    Above, a line a condition; below, a line a contrast of the plan, paired over problems, over
    the dashed line if the first named is ahead. `turns`: what the curves are of. `only`: these
    conditions and contrasts among them. Raises `UsageError` where one is not there, where there
    is no curve in any of `currencies`, or there are several models.
    """
    from matplotlib.ticker import MaxNLocator

    kept = [curve for curve in curves if curve.figure == KEPT.key]
    if only:
        there = {curve.condition for curve in kept}
        if absent := [name for name in only if name not in there]:
            raise UsageError(f"no condition {absent[0]!r}; there are {', '.join(sorted(there))}")
        kept = [c for c in kept if {c.condition, c.over or c.condition} <= {*only}]
    if len({curve.model for curve in kept}) > 1:
        raise UsageError("there are several models; draw the curves of one of them yourself")
    known = [name for name in currencies if any(curve.currency == name for curve in kept)]
    if not known:
        raise UsageError(
            f"there are no curves over {', '.join(NOUNS[name] for name in currencies)}"
        )
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
                    bounds = [(point.value, point.low, point.high) for point in curve.points]
                    shown = style if bands else replace(style, shade=0.0)
                    band(axes, curve.spent, bounds, shown, label=curve.name)
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
        write_caption(figure, _budget_caption(kept, turns, bands=bands))
        return figure


def _budget_caption(curves: Sequence[Curve], turns: pd.DataFrame, *, bands: bool) -> str:
    problems = sorted({curve.problems for curve in curves})
    fewer = f"{problems[0]} to " * (len(problems) > 1)
    seeds = max(curve.seeds for curve in curves)
    says = "Bands: 95 % bootstrap intervals over problems, point by point."
    return (
        f"n = {fewer}{count_words(problems[-1], 'problem')}, {count_words(seeds, 'seed')}. Best so"
        " far by the figures of the search, without second verdicts; no correct kernel counts as 1."
        f" {says if bands else 'No bands: they would hide one another.'} {setting(turns)}."
    )


def fast_p_curve(turns: pd.DataFrame) -> Figure:
    """One line a condition: the share of problems whose best kernel is correct and more than p
    times as fast as eager, for every p, with its 95 % interval as a band. The left end is the share
    with a correct kernel, however slow."""
    parts = conditions(turns)
    chart = fast_p_chart(dict(enumerate(_by_seed(part) for _, part in parts)))
    with styled_figure(7.2, 3.8) as figure:
        axes = figure.subplots()
        styles = line_styles(len(parts))
        for (label, _), style, line in zip(parts, styles, chart.lines, strict=True):
            bounds = zip(line.value, line.low, line.high, strict=True)
            band(axes, line.x, list(bounds), style, step=True, label=label)
        axes.set_xscale("log")
        axes.set_xlim(chart.lines[0].x[0], chart.lines[0].x[-1])
        axes.axvline(1, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
        axes.set_ylim(0, 1.03)
        axes.yaxis.set_major_formatter(percent)
        ratio_ticks(axes, "x")
        axes.legend(loc="upper right", labelcolor="linecolor", prop={"weight": "bold"})
        axes.set_xlabel(chart.axis_label)
        axes.set_ylabel("share of problems")
        axes.set_title("fast_p: correct, and more than p times as fast")
        write_caption(figure, caption(turns, BANDS))
        return figure


def spending(turns: pd.DataFrame) -> Figure:
    """A bar a condition: where the wall time of a problem went, and beside it its tokens."""
    from matplotlib.ticker import MaxNLocator

    runs = conditions(turns)
    estimated = "estimated " * bool(turns["answer_characters"].any())
    with styled_figure(9.2, 0.62 * len(runs) + 1.3) as figure:
        left, right = figure.subplots(1, 2, sharey=True)
        tokens = {"prompt_tokens": ("prompt", SKY), "completion_tokens": ("completion", VERMILLION)}
        for axes, parts, title in (
            (left, SPENT, "wall seconds a problem"),
            (right, tokens, f"{estimated}tokens a problem"),
        ):
            shown = {name: each for name, each in parts.items() if _is_seen(turns, name, parts)}
            for row, (_, part) in enumerate(runs):
                problems = part.groupby(["path", "problem"]).ngroups
                total = float(part[list(parts)].sum().sum()) / problems
                start = 0.0
                for name, (_, colour) in shown.items():
                    value = float(part[name].sum()) / problems
                    axes.barh(row, value, 0.62, start, color=colour, edgecolor="white")
                    start += value
                axes.annotate(
                    f"{total:,.0f}", (total, row), (4, 0), textcoords="offset points", va="center"
                )
            axes.set_title(title)
            axes.legend(
                handles=_patches(shown.values()), loc="upper left",
                bbox_to_anchor=(0, -0.45 / len(runs)), ncols=len(parts), handlelength=1,
            )  # fmt: skip
            axes.grid(axis="y", visible=False)
            axes.set_xlim(0, 1.2 * axes.dataLim.x1)
            axes.xaxis.set_major_locator(MaxNLocator(5))
        left.set_yticks(range(len(runs)), [label for label, _ in runs])
        left.invert_yaxis()
        right.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        write_caption(figure, caption(turns, "Means over problems and seeds, no intervals."))
        return figure


def _is_seen(turns: pd.DataFrame, part: str, parts: Iterable[str]) -> bool:
    """Whether it takes enough of the whole to be seen in a bar."""
    return float(turns[part].sum()) > 0.005 * float(turns[list(parts)].sum().sum())


def statuses_by_call(turns: pd.DataFrame) -> Figure:
    """A panel a condition: of the problems that got each call, the share whose answer was correct,
    or failed in which way."""
    from matplotlib.ticker import MaxNLocator

    runs = conditions(turns)
    columns = min(len(runs), 4)
    rows = -(-len(runs) // columns)
    styles = {"correct": ("correct", BLUE)} | {
        status: (words, colour) for status, (words, _, colour) in FAILURES.items()
    }
    with styled_figure(max(7.4, 2.6 * columns), 2.5 * rows + 0.9) as figure:
        panels = figure.subplots(rows, columns, sharey=True, squeeze=False)
        for axes in panels.flat[len(runs) :]:
            axes.set_visible(False)
        for axes, (label, part) in zip(panels.flat, runs, strict=False):
            made = part.groupby("call").size()
            bottom = np.zeros(len(made))
            for status, (_, colour) in styles.items():
                count = part[part["status"] == status].groupby("call").size()
                share = (count.reindex(made.index, fill_value=0) / made).to_numpy(dtype=float)
                axes.bar(made.index + 1, share, 0.8, bottom, color=colour, edgecolor="white")
                bottom += share
            axes.set_title(label)
            axes.set_xlabel("call")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.grid(axis="x", visible=False)
        for axes in panels[:, 0]:
            axes.yaxis.set_major_formatter(percent)
            axes.set_ylabel("share of problems")
        figure.legend(
            handles=_patches(styles[name] for name in styles if name in set(turns["status"])),
            loc="outside upper left", ncols=len(styles), handlelength=1,
        )  # fmt: skip
        write_caption(figure, caption(turns, "Counts over problems and seeds, no intervals."))
        return figure


def _patches(entries: Iterable[tuple[str, str]]) -> list[Patch]:
    from matplotlib.patches import Patch

    return [Patch(color=colour, label=words) for words, colour in entries]


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
    width = 0.4 + 0.09 * max(map(len, rows)) + 0.85 * len(parts)
    with styled_figure(width, 0.24 * len(rows) + 1.9) as figure:
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
    logs: dict[str, list[float]] = {}
    for reached in _by_seed(turns):
        for problem, kept in zip(reached.problems, reached.kept[:, -1], strict=True):
            logs.setdefault(problem, []).append(float(np.log(kept)))
    return {problem: float(np.exp(np.mean(each))) for problem, each in logs.items()}


def _by_seed(turns: pd.DataFrame) -> list[Outcomes]:
    return [outcomes(run) for _, run in turns.groupby("path", sort=False)]
