"""python -m experiments.advice RUN [RUN...] : which rules of advice came true, over runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from evaluator.command.command_line import Line, print_lines, serve

if TYPE_CHECKING:
    from experiments.analysis.advice_totals import AdviceTotals, RuleTotal

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
_HEADING = (
    "rule", "given", "followed", "figure moved", "time", "time where it moved", "predicted",
)  # fmt: skip


@app.command()
def advice(
    runs: Annotated[
        list[Path], Argument(help="Run directories, or folders of them.", metavar="RUN...")
    ],
    as_json: Annotated[bool, Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Sum up what became of each rule of advice: did its figure move, did the time fall."""
    from experiments.analysis.advice_totals import total_advice

    totals = total_advice(runs)
    if as_json:
        typer.echo(totals.model_dump_json())
    else:
        print_lines(total_lines(totals))


def total_lines(totals: AdviceTotals) -> Iterator[Line]:
    from experiments.analysis.table import Table

    noun = "run" if len(totals.runs) == 1 else "runs"
    yield "bold", f"advice over {len(totals.runs)} {noun} and {totals.turns} turns"
    if totals.silent:
        yield "yellow", f"note: {', '.join(totals.silent)}: no profile gave any advice"
    if not totals.rules:
        yield "", "no advice was given"
        return
    yield "", ""
    heading, *lines = Table(_HEADING, [_cells(total) for total in totals.rules]).plain()
    yield "bold", heading
    yield from (("", line) for line in lines)
    yield "", ""
    yield (
        "dim",
        "given: in a profile. followed: a kernel made from a prompt with it was profiled as well."
        " figure moved: as predicted, by more than its noise, with Wilson's 95 % interval."
        " time: median change. predicted: mean estimated gain.",
    )


def _cells(total: RuleTotal) -> tuple[str, ...]:
    from experiments.analysis.table import DASH, interval

    moved = interval(total.hit_rate, "share", DASH)
    return (
        total.rule,
        str(total.given),
        str(total.followed),
        f"{moved} of {total.known}" if total.hit_rate else moved,
        _change(total.time_change),
        _change(total.time_change_moved),
        DASH if total.predicted_gain is None else _change(-total.predicted_gain),
    )


def _change(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:+.0f} %"


if __name__ == "__main__":
    sys.exit(serve(app, "python -m experiments.advice"))
