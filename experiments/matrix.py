"""python -m experiments.matrix PLAN.yaml : a whole study, models x conditions x seeds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from evaluator.command.command_line import (
    AWAITING,
    INTERRUPTED,
    USAGE_ERROR,
    Line,
    print_lines,
    serve,
)

if TYPE_CHECKING:
    from experiments.study.answer import Answer
    from experiments.study.plan import Plan
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

    Exit codes: 0 completed; 2 a mistake in the plan, or a cell that failed; 3 prompts wait for
    their answers (relay/ with wait: 0); 130 interrupted.
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
            "awaited": result.awaited,
            "answers": [each.model_dump(mode="json") for each in given],
        }
        typer.echo(json.dumps(text))
    else:
        print_lines(study_lines(folder, plan, result, given, in_part=bool(only)))
    raise typer.Exit(exit_code(result))


def exit_code(result: StudyResult) -> int:
    if result.interrupted:
        return INTERRUPTED
    if result.failed:
        return USAGE_ERROR
    return AWAITING if result.awaited else 0


def study_lines(
    folder: Path,
    plan: Plan,
    result: StudyResult,
    given: tuple[Answer, ...],
    *,
    in_part: bool = False,
) -> Iterator[Line]:
    from agent.record.figures import awaited
    from experiments.study.answer import answer_lines

    yield "bold", plan.question
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
    if result.awaited:
        models = [each.model for each in plan.models]
        yield "yellow", f"{folder}: {awaited(result.awaited, *models)}"
        return
    state = "interrupted; the same command goes on" if result.interrupted else "done"
    yield "dim", f"{folder}: {state}"


if __name__ == "__main__":
    sys.exit(serve(command, "python -m experiments.matrix"))
