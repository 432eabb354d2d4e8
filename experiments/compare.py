"""python -m experiments.compare RUN_A RUN_B : which of two runs is better, as far as is known."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from evaluator.command.command_line import Line, print_lines, serve

if TYPE_CHECKING:
    from experiments.analysis.table import Table
    from experiments.comparison import Comparison, Row


def command(
    run_a: Annotated[Path, Argument(help="A run directory, or a compact recording of one.")],
    run_b: Annotated[Path, Argument(help="The other one.")],
    common: Annotated[
        bool, Option("--common", help="Leave out problems that only one of them has.")
    ] = False,
    calls: Annotated[
        int | None, Option("--calls", metavar="N", min=1, help="Only the first N calls a problem.")
    ] = None,
    seed: Annotated[int, Option("--seed", help="Seed of the bootstrap.")] = 0,
    as_json: Annotated[bool, Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Compare two runs over the same problems, budget, device and precision.

    Shares of problems solved and sped up (fast_p), speedups, costs and best-so-far by call, each
    with a 95 % bootstrap interval; `unclear` where the paired difference does not say who is
    better.
    """
    from experiments.comparison import compare_runs

    comparison = compare_runs(run_a, run_b, common=common, calls=calls, seed=seed)
    if as_json:
        typer.echo(comparison.model_dump_json())
    else:
        print_lines(comparison_lines(comparison))


def comparison_lines(comparison: Comparison) -> Iterator[Line]:
    from experiments.analysis.statistics import FEWEST
    from experiments.analysis.table import Table

    a, b = comparison.a, comparison.b
    for side, run in (("A", a), ("B", b)):
        temperature = "" if run.temperature is None else f", temperature {run.temperature:g}"
        yield "bold", f"{side}: {run.title}{temperature}"
        yield "dim", f"   {run.path}"
    backends = a.backend if a.backend == b.backend else f"{a.backend} (A) and {b.backend} (B)"
    yield (
        "",
        f"{len(comparison.problems)} problems, {comparison.calls} calls each, {backends} on"
        f" {a.device}, {a.precision}; intervals at {comparison.level:.0%}, paired over problems",
    )
    for note in comparison.notes:
        yield "yellow", f"note: {note}"
    yield "", ""
    heading = ("", "A", "B", "B against A", "better")
    rows = [_cells(row, _label(row, comparison)) for row in comparison.rows]
    yield from _styled(Table(heading, rows))
    yield "", ""
    yield "bold", "best so far: geometric mean speedup, at least 1 (eager kept)"
    followed = [row for row in comparison.by_call if row.figure == "speedup_kept"]
    yield from _styled(
        Table(
            ("after call", "A", "B", "B against A", "better"),
            [_cells(row, str(row.call)) for row in followed],
        )
    )
    yield "", ""
    yield (
        "dim",
        "unclear: the interval of the paired difference holds zero, equal runs would differ as much"
        f" in more than 1 of 20 comparisons, or the runs differ on fewer than {FEWEST} problems."
        " Each line stands by itself: of 20 lines about equal runs, one may look clear.",
    )


def _styled(table: Table) -> Iterator[Line]:
    heading, *lines = table.plain()
    yield "bold", heading
    for cells, line in zip(table.rows, lines, strict=True):
        yield ("green" if cells[-1] in "AB" else ""), line


def _label(row: Row, comparison: Comparison) -> str:
    label = row.label.replace("solved only", "solved by both")
    return label if row.problems == len(comparison.problems) else f"{label} ({row.problems})"


def _cells(row: Row, label: str) -> tuple[str, ...]:
    from experiments.analysis.table import gap, interval

    shown = (interval(found, row.unit) for found in (row.a, row.b))
    return label, *shown, gap(row.difference, row.unit), row.verdict


if __name__ == "__main__":
    sys.exit(serve(command, "python -m experiments.compare"))
