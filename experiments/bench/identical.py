"""`python -m experiments.bench.identical A.jsonl B.jsonl ...`: identical code, over several days.

Each file is one of `experiments.bench.tasks`: each task's own module as its candidate. The command
prints Markdown: for each level, how often a module was called faster or slower than itself, with
the upper end of the one-sided 95 % interval of that share, and how long a request took.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Annotated

import typer

from evaluator.command.command_line import serve
from evaluator.evaluation import Status, Verdict
from experiments.bench.known_ratios import at_most
from experiments.bench.suites.result_lines import Part, ResultLines
from experiments.bench.tasks import TaskRow
from problems.errors import UsageError

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def identical(
    files: Annotated[list[Path], typer.Argument(help="Files of experiments.bench.tasks.")],
) -> None:
    """Print how often identical code was called faster or slower. Exit code 2: wrong usage."""
    for path in files:
        if not path.is_file():
            raise UsageError(f"{path}: no such file")
    read = [ResultLines(path, TaskRow) for path in files]
    parts = [part for lines in read for part in lines.parts]
    typer.echo(markdown(parts, [row for lines in read for row in lines.rows]))


def markdown(parts: Sequence[Part], rows: Sequence[TaskRow]) -> str:
    """Where it was measured, a table by level, and each module that was told apart from itself."""
    levels = sorted({level_of(row) for row in rows})
    table = [
        "| level | evaluations | correct | faster or slower | of these at most (95 %) | same "
        "| unclear | width, median | request s, median | 95 of 100 |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        *(_line(level, [row for row in rows if level_of(row) == level]) for level in levels),
    ]
    told_apart = [
        f"* {row.problem}: {row.verdict}, {row.speedup} [{row.speedup_low}, {row.speedup_high}]"
        for row in rows
        if row.verdict in (Verdict.FASTER, Verdict.SLOWER)
    ]
    head = ["# Identical code", "", *dict.fromkeys(map(str, parts)), ""]
    return "\n".join([*head, *table, *(["", *told_apart] if told_apart else [])])


def level_of(row: TaskRow) -> str:
    """`level3` of `level3_9_ResNet18`."""
    return row.problem.partition("_")[0]


def _line(level: str, rows: Sequence[TaskRow]) -> str:
    timed = [row for row in rows if row.status == Status.CORRECT and row.verdict is not None]
    count: Counter[str] = Counter(row.verdict for row in timed if row.verdict is not None)
    apart = count[Verdict.FASTER] + count[Verdict.SLOWER]
    widths = [
        (row.speedup_high - row.speedup_low) / row.speedup
        for row in timed
        if row.speedup and row.speedup_low is not None and row.speedup_high is not None
    ]
    seconds = sorted(row.wall_s for row in rows)
    upper = f"{100 * at_most(apart, len(timed)):.1f} %" if timed else ""
    width = f"{100 * median(widths):.2f} %" if widths else ""
    return (
        f"| {level} | {len(rows)} | {len(timed)} | {apart} | {upper} | {count[Verdict.SAME]} "
        f"| {count[Verdict.UNCLEAR]} | {width} | {median(seconds):.1f} "
        f"| {seconds[int(0.95 * (len(seconds) - 1))]:.1f} |"
    )


if __name__ == "__main__":
    sys.exit(serve(app, "python -m experiments.bench.identical"))
