"""`python -m experiments.bench.tasks`: each task's own module as its candidate.

Every task must be judged, no module may be refused, and none may be faster or slower than itself.
Results name tasks by their ids and hold nothing of their text.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from typing import Any

import typer
from pydantic import Field

from evaluator.command.command_line import serve
from evaluator.command.option import takes_options
from evaluator.evaluation import Status, Verdict
from evaluator.record import Record
from evaluator.settings import BaselineName
from experiments.bench.suites.attempt import Attempt, attempt
from experiments.bench.suites.result_lines import Part, ResultLines
from experiments.bench.suites.suite_run import SuiteOptions, SuiteRun, suite_run
from tools.execute import own_module

CANNOT_BE_JUDGED = "cannot be judged"


class TaskRow(Record):
    """One task's own module, judged."""

    problem: str
    status: str
    """A `Status`, or `cannot be judged`."""
    reason: str = ""
    message: str = ""
    """Of the evaluation, or class and text of the `InfrastructureError`."""
    verdict: Verdict | None = None
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    eager_us: float | None = None
    notes: tuple[str, ...] = ()
    """Of the evaluation, such as why streams could not be held; rows of before have none."""
    reference: str = ""
    """Where the expected outputs came from: `Correctness.reference`."""
    error_ratio: float | None = None
    calls_made: int = 0
    wall_s: float
    """Of the whole request."""
    verdict_s: float
    """Of that, until the verdict on correctness, setting up included."""
    seconds: dict[str, float] = Field(default_factory=dict)
    """As the evaluation's record has them."""
    memory: dict[str, Any] | None = None
    """Peak bytes, as the evaluation's record has them; None where it has none."""


@takes_options(SuiteOptions)
def command(given: dict[str, object]) -> None:
    """Judge each task's own module. Exit code 0: all were reached; 1: go on; 2: wrong usage."""
    run, out = suite_run(given)
    lines = ResultLines(out, TaskRow)
    judge_tasks(run, lines)
    lines.sum_up(markdown(lines.parts, lines.rows))
    raise typer.Exit(1 if run.waiting({row.problem for row in lines.rows}) else 0)


def judge_tasks(run: SuiteRun, lines: ResultLines[TaskRow]) -> None:
    """Judge those that have no row yet, while there is time."""
    left = run.waiting({row.problem for row in lines.rows})
    for executor, problem in run.until_time_is_up(left, lines):
        source = own_module(run.reference(problem))
        lines.add(row_of(problem.id, attempt(executor, run.request(source, problem))))
        typer.echo(_line(lines.rows[-1]), err=True)


def row_of(problem: str, made: Attempt) -> TaskRow:
    """What came of a candidate for a problem."""
    evaluation = made.evaluation
    if evaluation is None:
        return TaskRow(
            problem=problem,
            status=CANNOT_BE_JUDGED,
            message=made.failure,
            wall_s=made.wall_s,
            verdict_s=made.wall_s,
        )
    timing, correctness, seconds = evaluation.timing, evaluation.correctness, evaluation.seconds
    refused = evaluation.status is not Status.CORRECT
    return TaskRow(
        problem=problem,
        status=evaluation.status,
        reason=evaluation.reason,
        message=evaluation.message[:300] if refused else "",
        verdict=timing.verdict if timing else None,
        speedup=timing.speedup if timing else None,
        speedup_low=timing.speedup_low if timing else None,
        speedup_high=timing.speedup_high if timing else None,
        eager_us=timing.baselines[BaselineName.EAGER].latency_us if timing else None,
        notes=evaluation.notes,
        reference=correctness.reference if correctness else "",
        error_ratio=correctness.error_ratio if correctness else None,
        calls_made=correctness.calls_made if correctness else 0,
        wall_s=made.wall_s,
        verdict_s=made.wall_s - seconds.timing - seconds.audit,
        seconds=seconds.model_dump(),
        memory=evaluation.model_dump(mode="json").get("memory"),
    )


def _line(row: TaskRow) -> str:
    said = f" {row.reason} {row.message}".rstrip()
    return f"{row.problem}: {row.status}{said}, {row.verdict_s:.1f} s"


def markdown(parts: Sequence[Part], rows: Sequence[TaskRow]) -> str:
    """The figures for a person."""
    lines = ["# Each task's own module as its candidate", ""]
    lines += dict.fromkeys(map(str, parts))
    lines += ["", *_summary(rows), ""]
    lines += [
        "| task | status | timing | speedup | reference | error ratio | verdict s | request s "
        "| peak GiB |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: row.problem):
        speedup = ""
        if row.speedup is not None:
            speedup = f"{row.speedup:.3f} [{row.speedup_low:.3f}, {row.speedup_high:.3f}]"
        ratio = "" if row.error_ratio is None else f"{row.error_ratio:.2g}"
        status = f"{row.status}: {row.reason} {row.message}" if row.message else row.status
        lines.append(
            f"| {row.problem} | {status} | {row.verdict or ''} | {speedup} | {row.reference} "
            f"| {ratio} | {row.verdict_s:.2f} | {row.wall_s:.2f} | {_gib(row.memory)} |"
        )
    return "\n".join(lines) + "\n"


def _summary(rows: Sequence[TaskRow]) -> list[str]:
    if not rows:
        return ["No task was reached."]
    unjudged = [row.problem for row in rows if row.status == CANNOT_BE_JUDGED]
    refused = [row.problem for row in rows if row.status not in (CANNOT_BE_JUDGED, Status.CORRECT)]
    other = [row.problem for row in rows if row.verdict in (Verdict.FASTER, Verdict.SLOWER)]
    took = sorted(row.verdict_s for row in rows)
    p95 = statistics.quantiles(took, n=20, method="inclusive")[-1] if len(took) > 1 else took[0]
    return [
        f"* {len(rows)} tasks, {len(rows) - len(unjudged) - len(refused)} correct",
        f"* cannot be judged: {named(unjudged)}",
        f"* refused: {named(refused)}",
        f"* called faster or slower than itself: {named(other)}",
        f"* until the verdict on correctness, setting up included: {statistics.median(took):.2f} s"
        f" in the median, {p95:.2f} s in 95 of 100, {took[-1]:.2f} s at most",
    ]


def named(ids: Sequence[str]) -> str:
    """How many, and which."""
    return f"{len(ids)} ({', '.join(ids)})" if ids else "none"


def _gib(memory: dict[str, Any] | None) -> str:
    figures = {k: v for k, v in (memory or {}).items() if isinstance(v, int)}
    return ", ".join(f"{k} {v / 2**30:.2f}" for k, v in figures.items())


if __name__ == "__main__":
    sys.exit(serve(command, "python -m experiments.bench.tasks"))
