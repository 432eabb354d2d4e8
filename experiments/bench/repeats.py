"""`python -m experiments.bench.repeats A.jsonl B.jsonl ...`: the same kernels, measured again.

Each file holds what `evaluator.check FOLDER --json` printed on one machine or day. Kernels are told
apart by their file's name. The command prints Markdown: for each two files how many intervals of
the speedup overlap, how far the figures lie apart, and whose verdict turned round.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Annotated

import typer

from evaluator.command.command_line import serve
from evaluator.evaluation import Timing, Verdict
from problems.errors import UsageError

app = typer.Typer(add_completion=False, rich_markup_mode=None)

LONG_US = 200.0
"""Where both figures of eager are longer, the host's launches hardly count."""
_OPPOSITE = {Verdict.FASTER, Verdict.SLOWER}


@dataclass(frozen=True)
class Repeat:
    """One kernel in two measurements."""

    kernel: str
    one: Timing
    other: Timing

    @property
    def overlaps(self) -> bool:
        """Whether the 95 % intervals of the speedup have a point in common."""
        low = max(self.one.speedup_low, self.other.speedup_low)
        return low <= min(self.one.speedup_high, self.other.speedup_high)

    @property
    def difference(self) -> float:
        """Of the speedups, relative to the smaller one."""
        low, high = sorted((self.one.speedup, self.other.speedup))
        return high / low - 1

    @property
    def is_long(self) -> bool:
        """Whether eager takes `LONG_US` or more both times."""
        return min(eager_us(self.one), eager_us(self.other)) >= LONG_US

    @property
    def turned(self) -> bool:
        """Whether it was `faster` once and `slower` the other time."""
        return {self.one.verdict, self.other.verdict} == _OPPOSITE


def eager_us(timing: Timing) -> float:
    """Eager's time, by the measurement of its speedup."""
    return timing.latency_us * timing.speedup


def read(path: Path) -> dict[str, Timing]:
    """By kernel, what was timed; raises `UsageError` where the file is none of `--json`."""
    found = {}
    try:
        for line in path.read_text().splitlines():
            row = json.loads(line)
            if row.get("timing"):
                protocol = f", {row['protocol']}" if row.get("protocol") else ""
                found[row["kernel"] + protocol] = Timing.model_validate(row["timing"])
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, AttributeError) as error:
        told = f"{path}: line {len(found) + 1} or later is none of evaluator.check's --json"
        raise UsageError(f"{told} ({type(error).__name__})") from None
    return found


def repeats(one: dict[str, Timing], other: dict[str, Timing]) -> list[Repeat]:
    """The kernels that were timed both times."""
    return [Repeat(name, one[name], other[name]) for name in one if name in other]


def lines(files: dict[str, dict[str, Timing]]) -> Iterator[str]:
    """The report; `files` by name."""
    yield "| measurement | kernels timed | median width of the interval |"
    yield "|---|---|---|"
    for name, timings in files.items():
        widths = [(t.speedup_high - t.speedup_low) / t.speedup for t in timings.values()]
        yield f"| {name} | {len(widths)} | {_share(median(widths)) if widths else '-'} |"
    yield ""
    yield (
        f"| pair | kernels | intervals overlap | median difference from {LONG_US:g} us on "
        "| below | other verdict | faster once, slower once |"
    )
    yield "|---|---|---|---|---|---|---|"
    turned = []
    for (a, one), (b, other) in combinations(files.items(), 2):
        both = repeats(one, other)
        changed = [each for each in both if each.one.verdict is not each.other.verdict]
        turned += [f"{each.kernel} ({a}, {b})" for each in both if each.turned]
        cells = (
            f"{a}, {b}",
            len(both),
            f"{sum(each.overlaps for each in both)} ({_share_of(both)})",
            _median([each.difference for each in both if each.is_long]),
            _median([each.difference for each in both if not each.is_long]),
            len(changed),
            sum(each.turned for each in both),
        )
        yield f"| {' | '.join(map(str, cells))} |"
    for each in turned:
        yield f"\nfaster once and slower once: {each}"


def _share_of(both: list[Repeat]) -> str:
    return _share(sum(each.overlaps for each in both) / len(both)) if both else "-"


def _median(values: list[float]) -> str:
    return _share(median(values)) if values else "-"


def _share(value: float) -> str:
    return f"{100 * value:.3g} %"


@app.command()
def report(
    files: Annotated[list[Path], typer.Argument(help="Output of evaluator.check --json.")],
) -> None:
    """Compare measurements of the same kernels."""
    if len(files) < 2:
        raise UsageError("one file alone repeats nothing: name two or more")
    names = [path.stem for path in files]
    if len(set(names)) < len(names):
        names = [str(path) for path in files]
    for line in lines(dict(zip(names, map(read, files), strict=True))):
        typer.echo(line)


if __name__ == "__main__":
    sys.exit(serve(app, "python -m experiments.bench.repeats"))
