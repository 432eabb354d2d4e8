"""`python -m problems.list`: what there is to be solved."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from problems.kernelbench_x import SUITE_HELP

if TYPE_CHECKING:
    from problems.problem import Problem


def command(
    suite: Annotated[
        Path | None,
        typer.Option(help=f"{SUITE_HELP} [our own]"),
    ] = None,
    level: Annotated[int | None, typer.Option(help="Only this level.")] = None,
    filter: Annotated[
        str | None,
        typer.Option(help="Only ids or categories that this regular expression is found in."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object a line on stdout.")
    ] = False,
) -> None:
    """List the problems of a suite."""
    from problems.errors import UsageError
    from problems.loader import load_suite, select  # heavier than --help may be

    try:
        problems = select(load_suite(suite), level=level, filter=filter)
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    if as_json:
        for problem in problems:
            print(json.dumps(_row(problem)))
    elif sys.stdout.isatty():
        _print_table(problems)
    else:
        for problem in problems:
            print(f"{problem.id:44} {problem.category or '-':16} {problem.path}")


def _row(problem: Problem) -> dict[str, str | int]:
    return {
        "id": problem.id,
        "level": problem.level,
        "name": problem.name,
        "category": problem.category,
        "path": str(problem.path),
        "suite": problem.suite,
        "hash": problem.hash,
    }


def _print_table(problems: list[Problem]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, header_style="bold")
    for heading in ("id", "level", "category", "path"):
        table.add_column(heading, no_wrap=heading == "id")
    for problem in problems:
        path = min(str(problem.path), os.path.relpath(problem.path), key=len)
        table.add_row(problem.id, str(problem.level), problem.category or "-", path)
    Console().print(table)


if __name__ == "__main__":
    typer.run(command)
