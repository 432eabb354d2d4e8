"""A picture of one trajectory: where the device time of each turn's kernel goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from experiments.plot_style import (
    BLUE,
    INK,
    ORANGE,
    VERMILLION,
    styled_figure,
    write_caption,
    written_by,
)
from tools.profiling.profile_facts import count_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from agent.record.turn import TurnRecord
    from experiments.analysis.trajectory import Trajectory

CHARACTERS_PER_INCH = 14.0
AXES_INCHES = 4.8
"""About what labels leave of the width for the bars."""


@dataclass(frozen=True)
class _Bar:
    label: str
    kernels: tuple[tuple[str, bool, float], ...]
    """Name, whether the candidate's own source holds it, microseconds."""
    call_us: float | None
    low_us: float | None
    high_us: float | None
    figures: str
    """What stands behind the bar."""


def kernel_times(trajectory: Trajectory) -> Figure:
    """A bar a turn, PyTorch eager first: the time of each kernel of one profiled call, the
    candidate's own apart from those of PyTorch and libraries, and the time of a call as judged.

    Lines mark `torch.compile` and the bound where the run measured them.
    """
    from matplotlib.patches import Patch
    from matplotlib.ticker import MaxNLocator

    rival, bars = trajectory.rival, _bars(trajectory)
    with styled_figure(7.2, 0.5 * len(bars) + 1.9) as figure:
        axes = figure.subplots()
        times = [sum(us for *_, us in bar.kernels) for bar in bars]
        calls = [bar.call_us or 0.0 for bar in bars]
        axes.set_xlim(0, 1.06 * max([*times, *calls, rival.compile_us or 0.0, 1.0]))
        for row, bar in enumerate(bars):
            _draw(axes, row, bar)
        for us, words in ((rival.bound_us, "bound"), (rival.compile_us, "torch.compile")):
            if us is not None:
                axes.axvline(us, color=INK, linewidth=1, linestyle=(0, (4, 3)), zorder=0.5)
                axes.annotate(
                    words, (us, 1), (3, -2), xycoords=("data", "axes fraction"), va="bottom",
                    textcoords="offset points", ha="center", fontsize=8,
                )  # fmt: skip
        axes.set_yticks(range(len(bars)), [bar.label for bar in bars])
        axes.set_ylim(len(bars) - 0.5, -0.6)
        axes.xaxis.set_major_locator(MaxNLocator(6))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.set_xlabel("microseconds a call")
        axes.grid(axis="y", visible=False)
        patches = [
            Patch(color=ORANGE, label="kernel of PyTorch or a library"),
            Patch(color=BLUE, label="kernel of the candidate"),
        ]
        figure.legend(handles=patches, loc="outside upper left", ncols=2, handlelength=1)
        write_caption(figure, _caption(trajectory))
        return figure


def _bars(trajectory: Trajectory) -> list[_Bar]:
    rival = trajectory.rival
    eager = tuple((each.name, False, each.time_us) for each in rival.longest)
    found = []
    if rival.eager_us is not None:
        found.append(_Bar("PyTorch eager", eager, rival.eager_us, None, None, ""))
    return [*found, *(_turn(record) for record in trajectory.records)]


def _turn(record: TurnRecord) -> _Bar:
    timing, profile = record.evaluation.timing, record.profile
    kernels = (
        tuple((each.name, each.own, each.time_us) for each in profile.kernels) if profile else ()
    )
    label = f"turn {record.turn}"
    if timing is None:
        words = record.evaluation.status.value.replace("_", " ")
        return _Bar(label, kernels, None, None, None, words)
    figures = f"{timing.speedup:.2f}x [{timing.speedup_low:.2f}, {timing.speedup_high:.2f}]"
    low, high = timing.latency_low_us, timing.latency_high_us
    return _Bar(label, kernels, timing.latency_us, low, high, figures)


def _draw(axes: Axes, row: int, bar: _Bar) -> None:
    inch = AXES_INCHES / axes.get_xlim()[1]
    start = 0.0
    for name, own, us in bar.kernels:
        axes.barh(row, us, 0.62, start, color=BLUE if own else ORANGE, edgecolor="white")
        room = int(us * inch * CHARACTERS_PER_INCH) - 2
        if room >= min(len(name), 6):
            shown = name if len(name) <= room else f"{name[: room - 1]}…"
            axes.text(
                start + us / 2, row, shown, ha="center", va="center", fontsize=7.5,
                color="white" if own else INK,
            )  # fmt: skip
        start += us
    if bar.call_us is not None:
        low, high = bar.low_us or bar.call_us, bar.high_us or bar.call_us
        axes.errorbar(
            bar.call_us, row, xerr=[[bar.call_us - low], [high - bar.call_us]], fmt="d",
            color=VERMILLION, markersize=5, capsize=2, zorder=4,
        )  # fmt: skip
    axes.annotate(
        bar.figures, (1, row), (4, 0), xycoords=axes.get_yaxis_transform(), va="center",
        textcoords="offset points", fontsize=8.5, annotation_clip=False,
    )  # fmt: skip


def _caption(trajectory: Trajectory) -> str:
    first = trajectory.records[0]
    rungs = {str(record.profile.rung) for record in trajectory.records if record.profile}
    made_by = written_by([first.model], [f"{first.backend} on {first.device}, {first.precision}"])
    return (
        f"{trajectory.problem}: n = 1 problem, {count_words(len(trajectory.records), 'turn')}."
        f" Bars: kernels of one profiled call ({', '.join(sorted(rungs)) or 'none'}). Diamonds:"
        f" median time of a judged call with its 95 % interval. Right: speedup over eager, measured"
        f" in alternation, with its interval. {made_by}."
    )
