"""`python -m experiments.bench.wrong`: wrong versions of each task, which the judge must refuse.

A version that is accepted is compared with the right one (`equivalence.py`): it may not be wrong.
Results name tasks by their ids and hold nothing of their text.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Annotated

import typer

from evaluator.command.command_line import serve
from evaluator.command.option import takes_options
from evaluator.evaluation import Status
from evaluator.executor.executor import Executor
from evaluator.record import Record
from experiments.bench.suites.attempt import Attempt, attempt
from experiments.bench.suites.equivalence import Difference, difference
from experiments.bench.suites.result_lines import Part, ResultLines
from experiments.bench.suites.suite_run import SuiteOptions, SuiteRun, suite_run
from experiments.bench.suites.wrong_candidate import RIGHT_CALLS, Kind, wrong_source
from experiments.bench.tasks import named
from problems.problem import Problem

_PROBE = 2.0**-5
"""A relative error that no fp32 task allows; how often it exceeds the limit tells the limit."""
_MOST_TRIES = 3
"""The limit follows the inputs, which are drawn anew each time."""


class Outcome(StrEnum):
    """What became of a version."""

    REFUSED = "refused"
    """Its outputs were found to be wrong."""
    ACCEPTED = "accepted"
    EQUIVALENT = "equivalent"
    """It was accepted, and it is not wrong."""
    OTHERWISE = "refused otherwise"
    """Not for its outputs: it raised, or ran out of memory or time."""
    NOT_MADE = "not made"
    """The task has nothing that could be wrong in this way."""
    NOT_JUDGED = "not judged"
    """Something on our side failed."""


class WrongRow(Record):
    """One wrong version of one task, judged."""

    problem: str
    kind: Kind
    figure: float
    """Where the error is, between 0 and 1; of `three_times` how large, relatively."""
    outcome: Outcome
    why: str = ""
    """In words, unless it was refused for its values."""
    status: Status | None = None
    reason: str = ""
    times_allowed: float | None = None
    """RMSE over what the rule allows for the whole output, in the worst call; the rule's limits for
    rows and elements are not in it."""
    reference: str = ""
    calls_judged: int = 0
    relative_error: float | None = None
    """Of an accepted version, against fp64."""
    times_pytorch: float | None = None
    """The same, over PyTorch's own error."""
    wall_s: float = 0.0


@takes_options(SuiteOptions)
def command(
    given: dict[str, object],
    versions: Annotated[
        int, typer.Option(min=1, help="Of each task, not counting equivalent ones.")
    ] = 5,
    every: Annotated[bool, typer.Option("--all", help="Every kind of wrong version.")] = False,
) -> None:
    """Judge wrong versions. Exit code 0: all refused; 1: not all, or go on; 2: wrong usage."""
    run, out = suite_run(given)
    lines = ResultLines(out, WrongRow)
    count = len(Kind) if every else versions
    judge_wrong(run, lines, count)
    lines.sum_up(markdown(lines.parts, lines.rows))
    good = {Outcome.REFUSED, Outcome.EQUIVALENT, Outcome.NOT_MADE}
    left = any(
        next(_left(problem, lines.rows, n, count), None) for n, problem in enumerate(run.problems)
    )
    raise typer.Exit(1 if left or any(row.outcome not in good for row in lines.rows) else 0)


def judge_wrong(run: SuiteRun, lines: ResultLines[WrongRow], count: int) -> None:
    """Judge `count` versions of each task, while there is time; those with a row are done."""
    numbers = {problem.id: number for number, problem in enumerate(run.problems)}

    def left(problem: Problem) -> Iterator[Kind]:
        return _left(problem, lines.rows, numbers[problem.id], count)

    waiting = [problem for problem in run.problems if next(left(problem), None)]
    for executor, problem in run.until_time_is_up(waiting, lines):
        for kind in left(problem):
            row = _Version(run, executor, problem, kind).row()
            lines.add(row)
            typer.echo(f"{row.problem} {row.kind}: {row.outcome} {row.why}", err=True)


def _left(problem: Problem, rows: list[WrongRow], number: int, count: int) -> Iterator[Kind]:
    """The kinds to be judged next, while there are fewer than `count`; which is first goes round.

    `rows` may grow meanwhile. A version that is not wrong doesn't count.
    """
    kinds = list(Kind)
    first = number % len(kinds)
    for kind in (*kinds[first:], *kinds[:first]):
        mine = [row for row in rows if row.problem == problem.id]
        wrong = [r for r in mine if r.outcome not in (Outcome.EQUIVALENT, Outcome.NOT_MADE)]
        if len(wrong) >= count:
            return
        if all(row.kind is not kind for row in mine):
            yield kind


class _Version:
    """One wrong version in the making."""

    def __init__(self, run: SuiteRun, executor: Executor, problem: Problem, kind: Kind) -> None:
        self._run = run
        self._executor = executor
        self._problem = problem
        self._kind = kind
        self._reference = run.reference(problem)
        self._figure = random.SystemRandom().random()
        self._wall_s = 0.0

    def row(self) -> WrongRow:
        """Have it judged; an accepted one is compared with the right one."""
        if self._kind is Kind.THREE_TIMES:
            return self._three_times()
        return self._told(self._judged())

    def _three_times(self) -> WrongRow:
        self._figure = _PROBE
        made = self._judged()
        for _ in range(_MOST_TRIES):
            if made.evaluation is None:
                break
            over = _times_allowed(made)
            if not over:
                return self._row(Outcome.NOT_MADE, made, why="a factor does not change its outputs")
            if self._figure != _PROBE and (over >= 1 or not _accepted(made)):
                break
            self._figure = 3 * self._figure / over
            made = self._judged()
        return self._told(made)

    def _judged(self) -> Attempt:
        made = attempt(self._executor, self._run.request(self._source(), self._problem))
        self._wall_s += made.wall_s
        return made

    def _source(self) -> str:
        return wrong_source(self._reference, self._kind, self._figure)

    def _told(self, made: Attempt) -> WrongRow:
        evaluation = made.evaluation
        if evaluation is None:
            return self._row(Outcome.NOT_JUDGED, made, why=made.failure)
        if evaluation.status is Status.INCORRECT:
            return self._row(Outcome.REFUSED, made)
        if evaluation.status is not Status.CORRECT:
            return self._row(Outcome.OTHERWISE, made, why=evaluation.message[:300])
        assert evaluation.correctness is not None
        late = self._kind is Kind.LATE
        if late and evaluation.correctness.calls_made <= RIGHT_CALLS:
            return self._row(Outcome.EQUIVALENT, made, why=f"{RIGHT_CALLS} calls were not made")
        found = difference(
            self._reference,
            self._source(),
            self._run.settings.device,
            calls=RIGHT_CALLS + 1 if late else 2,
        )
        if isinstance(found, str):
            return self._row(Outcome.ACCEPTED, made, why=found)
        if self._kind is Kind.MISSING_TERM and not found.left_out:
            return self._row(Outcome.NOT_MADE, made, why="it has no operator to leave out")
        outcome = Outcome.EQUIVALENT if found.reason else Outcome.ACCEPTED
        return self._row(outcome, made, why=found.reason, found=found)

    def _row(
        self, outcome: Outcome, made: Attempt, why: str = "", found: Difference | None = None
    ) -> WrongRow:
        evaluation = made.evaluation
        correctness = evaluation.correctness if evaluation else None
        return WrongRow(
            problem=self._problem.id,
            kind=self._kind,
            figure=self._figure,
            outcome=outcome,
            why=why,
            status=evaluation.status if evaluation else None,
            reason=evaluation.reason if evaluation else "",
            times_allowed=_times_allowed(made),
            reference=correctness.reference if correctness else "",
            calls_judged=correctness.calls_judged if correctness else 0,
            relative_error=found.relative_error if found else None,
            times_pytorch=found.times_pytorch if found else None,
            wall_s=self._wall_s,
        )


def _accepted(made: Attempt) -> bool:
    return made.evaluation is not None and made.evaluation.status is Status.CORRECT


def _times_allowed(made: Attempt) -> float | None:
    correctness = made.evaluation.correctness if made.evaluation else None
    if correctness is None or correctness.error_ratio is None:
        return None
    return correctness.error_ratio / (correctness.error_ratio_limit or 1.0)


def markdown(parts: Sequence[Part], rows: Sequence[WrongRow]) -> str:
    """The figures for a person."""
    lines = ["# Wrong versions", ""]
    lines += dict.fromkeys(map(str, parts))
    refused = Counter(row.problem for row in rows if row.outcome is Outcome.REFUSED)
    tasks = list(dict.fromkeys(row.problem for row in rows))
    few = [task for task in tasks if refused[task] < 4]
    seconds = sum(row.wall_s for row in rows)
    lines += [
        "",
        f"* {len(rows)} versions of {len(tasks)} tasks, {seconds:.0f} s",
        f"* tasks of which fewer than four were refused: {named(few)}",
        "",
        "| kind | " + " | ".join(Outcome) + " |",
        "|---|" + "---|" * len(Outcome),
    ]
    for kind in Kind:
        counts = Counter(row.outcome for row in rows if row.kind is kind)
        lines.append(f"| {kind} | " + " | ".join(str(counts[o]) for o in Outcome) + " |")
    counts = Counter(row.outcome for row in rows)
    lines.append("| all | " + " | ".join(str(counts[o]) for o in Outcome) + " |")
    for outcome in Outcome:
        if outcome is not Outcome.REFUSED and counts[outcome]:
            lines += ["", f"## {outcome.capitalize()}", ""]
            lines += [_item(row) for row in rows if row.outcome is outcome]
    return "\n".join(lines) + "\n"


def _item(row: WrongRow) -> str:
    said = [row.why] if row.why else []
    if row.reason:
        said.append(row.reason)
    if row.relative_error is not None:
        said.append(f"relative error {row.relative_error:.2g}")
    if row.times_pytorch is not None:
        said.append(f"{row.times_pytorch:.2g} times PyTorch's own")
    if row.times_allowed is not None:
        said.append(f"{row.times_allowed:.2g} times what is allowed")
    return f"* {row.problem}, {row.kind} at {row.figure:.4g}: {'; '.join(said)}"


if __name__ == "__main__":
    sys.exit(serve(command, "python -m experiments.bench.wrong"))
