"""python -m experiments.matrix PLAN.yaml : a whole study, models x conditions x seeds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from evaluator.command.command_line import INTERRUPTED, USAGE_ERROR, Line, print_lines, serve

if TYPE_CHECKING:
    from experiments.study.answer import Answer
    from experiments.study.study_run import StudyResult


def command(
    plan_file: Annotated[
        Path, Argument(help="What to run and what it is to answer.", metavar="PLAN.yaml")
    ],
    output: Annotated[
        Path | None,
        Option("--output", "-o", metavar="DIR", help="The study's folder. [runs/NAME OF THE PLAN]"),
    ] = None,
    only: Annotated[
        list[str] | None,
        Option(
            "--cell",
            metavar="NAME",
            help="Only this cell, * for any text (repeatable): processes may share a study.",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        Option("--dry-run", help="Show cells, calls and dollars; call nothing."),
    ] = False,
    as_json: Annotated[
        bool, Option("--json", help="One JSON object with the answers on stdout.")
    ] = False,
) -> None:
    """Run every cell of a plan: each model under each condition with each seed.

    The same command again goes on where it was interrupted. Cells take turns problem by problem,
    so that what a stop leaves can be compared. At the end the plan's questions are answered.

    Exit codes: 0 completed; 2 a mistake in the plan, or a cell that failed; 130 interrupted.
    """
    from experiments.study.plan import load_plan

    plan = load_plan(plan_file)
    folder = output or Path("runs") / plan_file.stem
    if dry_run:
        from experiments.study.forecast import forecast, forecast_lines

        found = forecast(plan, folder)
        if as_json:
            typer.echo(found.model_dump_json())
        else:
            print_lines(forecast_lines(found))
        return
    from experiments.study.answer import answers
    from experiments.study.study_folder import StudyFolder
    from experiments.study.study_run import run_study

    result = run_study(plan, folder, only or ())
    record = StudyFolder(folder).record()
    given = answers(record, folder) if record is not None and not only else ()
    if as_json:
        import json

        text = {
            "study": str(folder),
            "complete": result.complete,
            "failed": dict(result.failed),
            "capped": result.capped,
            "answers": [each.model_dump(mode="json") for each in given],
        }
        typer.echo(json.dumps(text))
    else:
        print_lines(study_lines(folder, plan.question, result, given, in_part=bool(only)))
    raise typer.Exit(INTERRUPTED if result.interrupted else USAGE_ERROR if result.failed else 0)


def study_lines(
    folder: Path,
    question: str,
    result: StudyResult,
    given: tuple[Answer, ...],
    *,
    in_part: bool = False,
) -> Iterator[Line]:
    from experiments.study.answer import answer_lines

    yield "bold", question
    for line in answer_lines(given):
        yield "", line
    if in_part:
        yield "dim", "without --cell the same command answers the plan's questions"
    elif not given:
        yield "dim", "the plan has no contrasts; kernel-refinery compare compares two cells"
    for name, why in result.failed.items():
        yield "red", f"failed: {name}: {why}"
    for name in result.capped:
        yield "yellow", f"{name}: a cap on dollars was reached; the rest was not begun"
    state = "interrupted; the same command goes on" if result.interrupted else "done"
    yield "dim", f"{folder}: {state}"


if __name__ == "__main__":
    sys.exit(serve(command, "python -m experiments.matrix"))
