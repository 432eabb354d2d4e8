"""python -m agent.show RUN : any recorded trajectory, turn by turn. Needs only turns.jsonl."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from evaluator.command.command_line import Line, print_lines, serve
from problems.errors import UsageError
from problems.plain_file import insist_on_plain_files

if TYPE_CHECKING:
    from agent.config.run_config import RunConfig
    from agent.record.run_files import RunFiles
    from agent.record.turn import TurnRecord


def command(
    run: Annotated[Path, Argument(help="A run directory, its turns.jsonl, or NAME.tar.xz.")],
    problem: Annotated[
        str | None, Option("--problem", metavar="ID", help="Only this problem.")
    ] = None,
    sample: Annotated[int | None, Option("--sample", metavar="N", help="Only this sample.")] = None,
    turn: Annotated[int | None, Option("--turn", metavar="N", help="Only this turn.")] = None,
    as_json: Annotated[
        bool, Option("--json", help="The records as they stand, one JSON object a line.")
    ] = False,
    prompt: Annotated[bool, Option("--prompt", help="Each turn's prompt too.")] = False,
    answer: Annotated[bool, Option("--answer", help="Each turn's whole answer too.")] = False,
    no_diff: Annotated[bool, Option("--no-diff", help="No diffs between kernels.")] = False,
) -> None:
    """Print a run turn by turn: what each kernel came to, what the next prompt may say of it, what
    it cost, and what changed."""
    from agent.record.archive import unpacked
    from agent.record.progress import best_of
    from agent.record.run_files import READ, RunFiles
    from agent.record.turn_log import has_turns
    from agent.view.trajectory import by_problem, overview, rival_lines, turn_lines, unjudged_lines

    run = unpacked(run)
    folder = run.parent if run.is_file() else run
    insist_on_plain_files(folder, READ)
    files = RunFiles(folder)
    result = files.result()
    failed = unjudged_lines(result.problems if result else ())
    if failed and not has_turns(folder):
        print_lines(failed, stderr=as_json)
        return
    turns = _of_problem(folder, problem)
    chosen = [
        record
        for record in turns
        if sample in (None, record.sample) and turn in (None, record.turn)
    ]
    if not chosen:
        raise UsageError(f"{folder} holds no such turn yet; it has {len(turns)} turns in all")
    if as_json:
        for record in chosen:
            typer.echo(record.model_dump_json())
        return
    everything = by_problem(turns)
    results = result.problems if result else ()
    config = _config(files)
    lines: list[Line] = [*_heading(folder, turns[0], config)]
    lines += [*overview(turns, results, config), *failed]
    for name, records in by_problem(chosen).items():
        lines += [("", ""), ("bold underline", name)]
        lines += rival_lines(files.rival(name), best_of(everything[name]))
        for record in records:
            lines += turn_lines(
                record,
                everything[name],
                files,
                config,
                prompt=prompt,
                answer=answer,
                diff=not no_diff,
            )
    print_lines(lines)


def _config(files: RunFiles) -> RunConfig | None:
    """None where there is none, or where it is another version's: turns are enough."""

    if not files.config_path.exists():
        return None
    try:
        return files.config()
    except UsageError as error:
        print_lines([("yellow", f"without the settings: {error}")], stderr=True)
        return None


def _of_problem(folder: Path, problem: str | None) -> list[TurnRecord]:
    from agent.config.settings_file import nearest
    from agent.record.turn_log import FILE, has_turns, read_turns

    if not has_turns(folder):
        raise UsageError(f"{folder} holds no {FILE}; give a run directory, such as one under runs/")
    turns = list(read_turns(folder))
    problems = {record.problem for record in turns}
    if problem is not None and problem not in problems:
        raise UsageError(f"no problem {problem!r} in {folder}: {nearest(problem, problems)}")
    return [record for record in turns if problem in (None, record.problem)]


def _heading(folder: Path, first: TurnRecord, config: RunConfig | None) -> Iterable[Line]:
    from agent.fork import Fork
    from agent.record import figures

    # The turns that a fork took over were made under other settings.
    made = config or first
    budget = None if config is None else config.budget
    yield "bold", figures.heading(folder, made, first.device, budget)
    if config is not None and config.fork is not None:
        then = f"{first.strategy} {first.feedback}, {first.model}"
        yield "", f"{Fork.parse(config.fork).words} ({then})."
    if made.model == figures.TUNER:
        yield "dim", f"{figures.TUNER_NOTE}."
    yield "", ""


if __name__ == "__main__":
    sys.exit(serve(command, "python -m agent.show"))
