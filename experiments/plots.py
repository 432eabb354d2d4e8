"""Pictures of runs, for notebooks: each function takes what `load_runs` gives, returns a figure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.analysis.caption import caption, counted, written_by
from experiments.analysis.label import conditions, policy_label, run_labels
from experiments.analysis.measures import KEPT, Measure
from experiments.analysis.outcomes import Outcomes, outcomes
from experiments.analysis.statistics import Estimate, Resamples
from experiments.analysis.transitions import transitions
from experiments.plot_style import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
    LineStyle,
    band,
    height_for,
    label_ends,
    line_styles,
    percent,
    ratio_ticks,
    styled_figure,
    write_caption,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    from experiments.comparison import Comparison

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


def trajectories(turns: pd.DataFrame, columns: int = 2) -> Figure:
    """One panel a problem of one run: each call's speedup with its interval, what failed and how,
    and the best so far as a step line.

    The speedups' axis is logarithmic, and the same in all panels unless one problem's speedups
    would press all others flat.
    """
    panels = list(turns.groupby("problem", sort=False))
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
        says = "Dots: speedup over eager with its 95 % interval; dashed: eager."
        write_caption(figure, caption(turns, f"Policy: {next(_runs(turns))[0]}.", says))
        return figure


def _span(turns: pd.DataFrame) -> tuple[float, float]:
    """The speedups to show, eager among them."""
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


def best_by_call(turns: pd.DataFrame, measure: Measure = KEPT) -> Figure:
    """One line a run: a figure (geometric mean of the best so far) after each call, with the 95 %
    bootstrap interval over problems as a band."""
    runs = list(_by_run(turns))
    with styled_figure(7.2, height_for(len(runs))) as figure:
        axes = figure.subplots()
        ends = []
        for style, (label, reached) in zip(line_styles(len(runs)), runs, strict=True):
            resamples = Resamples.of(len(reached.problems))
            curve = measure.estimates(measure.table(reached), resamples)
            calls = np.arange(1, reached.calls + 1)
            band(axes, calls, curve, style)
            ends.append((float(calls[-1]), curve[-1].value, label, style.colour))
        if measure.unit == "ratio":
            axes.set_yscale("log")
            ratio_ticks(axes)
        else:
            axes.yaxis.set_major_formatter(percent)
        label_ends(axes, ends)
        judged_again = any(not np.isnan(reached.confirmed).all() for _, reached in runs)
        last = "; the last point is that of the second verdicts" if judged_again else ""
        axes.set_xlabel(f"calls a problem{last}")
        axes.set_xticks(range(1, int(turns["call"].max()) + 2))
        axes.set_title(f"{measure.label}, best so far")
        write_caption(figure, caption(turns, BANDS))
        return figure


def paired_by_call(comparison: Comparison) -> Figure:
    """How many times as high B's geometric mean of the best so far is as A's, after each call, with
    the 95 % interval of the pairs; above the dashed line B is ahead."""
    rows = [row for row in comparison.by_call if row.figure == KEPT.key]
    pairs = [(row.call or 0, row.difference, row.verdict) for row in rows if row.difference]
    with styled_figure(7.2, 3.2) as figure:
        axes = figure.subplots()
        axes.set_yscale("log")
        curve = [Estimate(gap.value, gap.low or 0.0, gap.high or np.inf) for _, gap, _ in pairs]
        calls = [call for call, _, _ in pairs]
        band(axes, np.array(calls), curve, LineStyle(GREEN))
        axes.axhline(1, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
        for verdict in dict.fromkeys(verdict for _, _, verdict in pairs):
            chosen = [(call, gap.value) for call, gap, each in pairs if each == verdict]
            unclear = verdict in ("unclear", "unknown")
            axes.plot(
                [call for call, _ in chosen], [ratio for _, ratio in chosen], linestyle="",
                marker="s" if verdict == "A" else "o", markersize=6, markeredgewidth=1.5,
                color="white" if unclear else GREEN, markeredgecolor=GREEN,
                label=verdict if unclear else f"{verdict} is better",
            )  # fmt: skip
        ratio_ticks(axes)
        axes.set_xticks(calls)
        axes.set_xlabel("calls a problem")
        axes.legend(loc="best")
        a, b = (policy_label(run.strategy, run.feedback) for run in (comparison.a, comparison.b))
        axes.set_title(f"best so far: {b} (B) over {a} (A), paired over problems")
        sides = (comparison.a, comparison.b)
        size = counted(len(comparison.problems), "problem")
        made_by = written_by(
            [run.model for run in sides],
            [f"{run.backend} on {run.device}, {run.precision}" for run in sides],
        )
        write_caption(
            figure,
            f"n = {size}, {counted(comparison.calls, 'call')} each, 1 seed. Band: 95 % bootstrap"
            f" interval of the pairs. {made_by}.",
        )
        return figure


def best_by_cost(turns: pd.DataFrame, cost: str = "tokens") -> Figure:
    """One line a run: geometric mean of the best so far (at least 1) against what was spent on a
    problem: `tokens`, `cost_usd`, `seconds_wall` or `seconds_device`. Ends where a run's thriftiest
    problem does, since further on some problems would have no more calls."""
    runs = list(_by_run(turns))
    words = {"tokens": "tokens", "cost_usd": "dollars", "seconds_wall": "wall seconds"}
    with styled_figure(7.2, height_for(len(runs))) as figure:
        axes = figure.subplots()
        ends = []
        for style, (label, reached) in zip(line_styles(len(runs)), runs, strict=True):
            spent = reached.spent[cost].cumsum(axis=1)
            levels = np.linspace(0, spent[:, -1].min(), 60)
            # After how many calls a problem had spent that much; column 0 is "no call yet".
            done = (spent[:, None, :] <= levels[None, :, None]).sum(axis=2)
            kept = np.concatenate([np.ones((len(spent), 1)), reached.kept], axis=1)
            table = np.log(np.take_along_axis(kept, done, axis=1))
            curve = KEPT.estimates(table, Resamples.of(len(spent)))
            band(axes, levels, curve, style)
            ends.append((float(levels[-1]), curve[-1].value, label, style.colour))
        axes.set_yscale("log")
        ratio_ticks(axes)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
        label_ends(axes, ends)
        axes.set_xlabel(f"{words.get(cost, 'device seconds')} a problem")
        axes.set_title(f"{KEPT.label}, best so far")
        until = "A line ends where the run's thriftiest problem had spent all."
        write_caption(figure, caption(turns, BANDS, until))
        return figure


def fast_p_curve(turns: pd.DataFrame) -> Figure:
    """One line a run: the share of problems whose best kernel is correct and more than p times as
    fast as eager, for every p, with its 95 % interval as a band. At the left end stands the share
    with a correct kernel, however slow."""
    runs = list(_by_run(turns))
    with styled_figure(7.2, height_for(len(runs))) as figure:
        axes = figure.subplots()
        low, high = _span(turns)
        thresholds = np.geomspace(low, max(high, 2.2), 240)
        for style, (label, reached) in zip(line_styles(len(runs)), runs, strict=True):
            hits = np.stack([reached.faster(p)[:, -1] for p in (0.0, *thresholds[1:])], axis=1)
            curve = Resamples.of(len(reached.problems)).shares(hits)
            band(axes, thresholds, curve, style, step=True, label=label)
        axes.set_xscale("log")
        axes.set_xlim(thresholds[0], thresholds[-1])
        axes.axvline(1, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
        axes.set_ylim(0, 1.03)
        axes.yaxis.set_major_formatter(percent)
        ratio_ticks(axes, "x")
        axes.legend(loc="upper right", labelcolor="linecolor", prop={"weight": "bold"})
        axes.set_xlabel("p, times as fast as eager")
        axes.set_ylabel("share of problems")
        axes.set_title("fast_p: correct, and more than p times as fast")
        write_caption(figure, caption(turns, BANDS))
        return figure


def spending(turns: pd.DataFrame) -> Figure:
    """A bar a condition: where the wall time of a problem went, and beside it its tokens."""
    from matplotlib.ticker import MaxNLocator

    runs = conditions(turns)
    with styled_figure(9.2, 0.62 * len(runs) + 1.3) as figure:
        left, right = figure.subplots(1, 2, sharey=True)
        tokens = {"prompt_tokens": ("prompt", SKY), "completion_tokens": ("completion", VERMILLION)}
        for axes, parts, title in (
            (left, SPENT, "wall seconds a problem"),
            (right, tokens, "tokens a problem"),
        ):
            shown = {name: each for name, each in parts.items() if _is_seen(turns, name, parts)}
            for row, (_, part) in enumerate(runs):
                problems = part.groupby(["path", "problem"]).ngroups
                total = float(part[list(parts)].sum().sum()) / problems
                _stack(axes, row, part[list(shown)].sum() / problems, shown)
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


def _stack(axes: Axes, row: int, sums: pd.Series, parts: dict[str, tuple[str, str]]) -> None:
    start = 0.0
    for column, (_, colour) in parts.items():
        value = float(sums[column])
        axes.barh(row, value, left=start, color=colour, height=0.62, edgecolor="white")
        start += value


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


def status_steps(turns: pd.DataFrame) -> Figure:
    """From the status of a turn to that of the next: how often, as a table of shaded counts."""
    table = transitions(turns)
    words = {status: entry[0] for status, entry in FAILURES.items()} | {"correct": "correct"}
    size = 0.75 * max(len(table), 2)
    with styled_figure(size + 2.6, size + 1.1) as figure:
        axes = figure.subplots()
        counts = table.to_numpy(dtype=float)
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
        for (row, column), share in np.ndenumerate(shares):
            axes.text(
                column, row, f"{int(counts[row, column])}" if counts[row, column] else "",
                ha="center", va="center", color="white" if share > 0.55 else INK,
            )  # fmt: skip
        names = [words[status] for status in table.index]
        axes.set_xticks(range(len(names)), names, rotation=25, ha="right")
        axes.set_yticks(range(len(names)), names)
        axes.set_xlabel("the turn after")
        axes.set_ylabel("a turn")
        axes.grid(visible=False)
        axes.tick_params(length=0)
        axes.set_title("Counts of steps; shade: share of the row")
        write_caption(figure, caption(turns))
        return figure


def _runs(turns: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Each run with its label."""
    labels = run_labels(turns)
    for path, part in turns.groupby("path", sort=False):
        yield labels[str(path)], part


def _by_run(turns: pd.DataFrame) -> Iterator[tuple[str, Outcomes]]:
    for label, part in _runs(turns):
        yield label, outcomes(part)
