"""How all pictures look: colours, a figure, ticks, lines with bands.

Colours are Okabe and Ito's, which colour-blind people tell apart, and nothing is said by colour
alone. Matplotlib is imported when the first picture is drawn, and its settings stay as they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle, islice, product
from textwrap import fill
from typing import TYPE_CHECKING, Literal

from experiments.analysis.label import model_label
from tools.profiling.profile_facts import count_words

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
)
COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY)
DASHES = ("solid", "dashed", "dotted", "dashdot")
INK, FAINT = "#333333", "#9A9A9A"
RATIO_TICKS = (
    (0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2),
    (0.5, 0.6, 0.8, 1, 1.2, 1.4, 1.7, 2, 2.5, 3),
    (0.3, 0.5, 0.7, 1, 1.5, 2, 3, 4, 5, 7, 10),
    tuple(factor * 10.0**power for power in range(-3, 5) for factor in (1, 2, 5)),
    tuple(10.0**power for power in range(-6, 7)),
)
"""Candidates for the ticks of a speedup's axis, finest first."""
STYLE = {
    "figure.dpi": 110,
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.8,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "legend.frameon": False,
}


@contextmanager
def styled_figure(width: float, height: float) -> Iterator[Figure]:
    """A figure in our style, `width` x `height` inches; nothing global changes."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        yield Figure(figsize=(width, height), layout="constrained")


def write_caption(figure: Figure, text: str) -> None:
    """Write `text` below all axes, in lines as long as the figure is wide."""
    characters = int(17.5 * figure.get_figwidth())
    figure.supxlabel(
        fill(text, characters), x=0.01, ha="left", fontsize=8, color="#555555", linespacing=1.3
    )


def caption(turns: pd.DataFrame, *says: str) -> str:
    """`n = 14 problems, 10 calls each, 1 seed. ...`: the caption of a picture of `turns`, as
    `load_runs` gives them. `says`: what its marks are, a sentence each."""
    problems, seeds = turns["problem"].nunique(), turns["run_seed"].nunique()
    calls = sorted(set(turns.groupby(["path", "problem"]).size()))
    made = f"{calls[0]} to {calls[-1]} calls" if len(calls) > 1 else count_words(calls[0], "call")
    each = " each" if problems > 1 else ""
    n = f"n = {count_words(problems, 'problem')}, {made}{each}, {count_words(seeds, 'seed')}."
    return " ".join((n, *says, f"{setting(turns)}."))


def setting(turns: pd.DataFrame) -> str:
    """`Kernels by offline/tuner (rule-based ...); cuda on NVIDIA H200, fp32`."""
    devices = turns["backend"] + " on " + turns["device"] + ", " + turns["precision"]
    return written_by(turns["model"], devices)


def written_by(models: Iterable[str], devices: Iterable[str]) -> str:
    """The same of models and devices; each is named once."""
    labels = " and ".join(dict.fromkeys(model_label(model) for model in models))
    return f"Kernels by {labels}; {' and '.join(dict.fromkeys(devices))}"


@dataclass(frozen=True)
class LineStyle:
    colour: str
    dash: str = "solid"
    shade: float = 0.14
    """Opacity of the band around it."""


MOST_BANDS = len(COLOURS)
"""More bands would hide one another, so they are left out then."""


def line_styles(lines: int, after: int = 0) -> list[LineStyle]:
    """A style for each line; the first 24 differ. `after`: so many other lines have theirs."""
    kinds = cycle(product(DASHES, COLOURS))
    shade = 0.14 if lines <= MOST_BANDS else 0.0
    return [LineStyle(c, dash, shade) for dash, c in islice(kinds, after, after + lines)]


def band(
    axes: Axes,
    x: Sequence[float],
    points: Sequence[tuple[float, float | None, float | None]],
    style: LineStyle,
    *,
    step: bool = False,
    label: str,
) -> None:
    """A line over `x` of values with the bounds of their intervals, if any, as a band."""
    value = [middle for middle, _, _ in points]
    low = [middle if bound is None else bound for middle, bound, _ in points]
    high = [middle if bound is None else bound for middle, _, bound in points]
    axes.fill_between(
        x,
        low,
        high,
        color=style.colour,
        alpha=style.shade,
        linewidth=0,
        step="post" if step else None,
    )
    axes.plot(
        x, value, color=style.colour, linestyle=style.dash, linewidth=2, label=label,
        drawstyle="steps-post" if step else "default",
        marker="" if step or len(x) > 20 else "o", markersize=4,
    )  # fmt: skip


def ratio_ticks(axes: Axes, which: Literal["x", "y"] = "y", above: float = 0.0) -> None:
    """Speedups as `0.5x`, `1x`, `2x`, not as powers of ten; as many as there is room for."""
    from matplotlib.ticker import FixedLocator, NullLocator

    low, high = axes.get_ylim() if which == "y" else axes.get_xlim()
    for candidates in RATIO_TICKS:
        ticks = [tick for tick in candidates if max(low, above) <= tick <= high]
        covers = candidates[0] <= 1.3 * max(low, above) and high <= 1.3 * candidates[-1]
        if covers and len(ticks) <= (7 if which == "y" else 9):
            break
    axis = axes.yaxis if which == "y" else axes.xaxis
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: f"{value:g}x")


def percent(value: float, _: object) -> str:
    return f"{100 * value:.0f} %"
