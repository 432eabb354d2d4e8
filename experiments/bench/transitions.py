"""`python -m experiments.bench.transitions DIR OUT`: does what is said of a writer's rounds hold?

DIR has `*.jsonl` of KernelBench-X: code before and after a round, and what was said of both. It is
judged by their protocol and by ours. Results name tasks and hold none of their text.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from math import exp, hypot, inf, log
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from evaluator.command.command_line import serve
from evaluator.command.option import takes_options
from evaluator.evaluation import Status
from evaluator.reason import Reason
from evaluator.settings import Protocol
from experiments.analysis.statistics import wilson
from experiments.bench.suites.attempt import attempt
from experiments.bench.suites.result_lines import Part, ResultLines
from experiments.bench.suites.suite_run import SuiteOptions, suite_run
from experiments.bench.tasks import CANNOT_BE_JUDGED, TaskRow, row_of
from problems.errors import UsageError
from problems.function import SEPARATOR

_PROTOCOLS: tuple[Protocol, ...] = ("kernelbench-x", "refinery")
_RIGHT = {"rescued": (False, True), "faster": (True, True), "regressed": (True, False)}
"""By what a round did, whether the code was right before and after it."""
_NOT_JUDGED = "not judged: "
_SELECTED = """\
Rows that were right before are here because they got faster, or wrong: so they cannot say whether
rescued kernels are slower than those that were right at once. Intervals are 95 %, and rows count as
independent, also those of one task. `faster`: the interval of the ratio lies above 1."""


class VerdictRow(TaskRow):
    """One kernel by one protocol."""

    kernel: str
    """Task, the first hex digits of its text's SHA-256, and protocol."""
    findings: tuple[str, ...] = ()


class Transition(NamedTuple):
    task: str
    rounds: str
    claim: str
    gain: float | None
    """The speedup after over that before, as it was said."""
    codes: tuple[str, ...]
    """Before and after."""

    def kernels(self, protocol: Protocol) -> list[str]:
        digests = (hashlib.sha256(code.encode()).hexdigest()[:16] for code in self.codes)
        return [f"{self.task} {digest} {protocol}" for digest in digests]


@takes_options(SuiteOptions)
def command(
    given: dict[str, object],
    folder: Annotated[Path, typer.Argument(help="Its *.jsonl have code before and after rounds.")],
    out: Annotated[Path, typer.Argument(help="JSON lines that are gone on with; a page beside.")],
) -> None:
    """Judge both sides of each transition. Tasks: --suite, else KernelBench-X's in DIR itself.

    Exit code 0: all were reached; 1: go on with the same command; 2: wrong usage.
    """
    transitions = list(_transitions(folder))
    run, _ = suite_run({"suite": f"kernelbench-x:{folder}", **given})
    lines = ResultLines(out, VerdictRow)
    waiting = [p for p in run.problems if next(_left(p.name, transitions, lines.rows), None)]
    for executor, problem in run.until_time_is_up(waiting, lines):
        for code, kernel, protocol in _left(problem.name, transitions, lines.rows):
            request = run.request(code, problem)
            settings = request.settings.model_copy(update={"protocol": protocol})
            made = attempt(executor, request.model_copy(update={"settings": settings}))
            found = made.evaluation.findings if made.evaluation else ()
            row = dict(row_of(problem.name, made)) | {"kernel": kernel, "findings": found}
            lines.add(VerdictRow.model_validate(row))
            typer.echo(f"{kernel}: {row['status']}, {made.wall_s:.1f} s", err=True)
    lines.sum_up(markdown(lines.parts, lines.rows, transitions))
    left = [next(_left(p.name, transitions, lines.rows), None) for p in run.problems]
    raise typer.Exit(1 if any(left) else 0)


def _transitions(folder: Path) -> Iterator[Transition]:
    for path in sorted(folder.glob("*.jsonl")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            try:
                row = json.loads(line)
                before, after = row["before"], row["after"]
                right = before["exe_ok"], after["exe_ok"]
                (claim,) = (claim for claim, said in _RIGHT.items() if said == right)
                gain = after["speedup"] / before["speedup"] if claim == "faster" else None
                codes = (row[key].partition(SEPARATOR)[0] for key in ("before_code", "after_code"))
                task = Path(row["task_id"]).stem
                yield Transition(task, row["transition"], claim, gain, tuple(codes))
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                raise UsageError(f"{path}: line {number} is no transition: {error!r}") from None


def _left(
    task: str, transitions: Sequence[Transition], rows: Sequence[VerdictRow]
) -> Iterator[tuple[str, str, Protocol]]:
    """`rows` may grow meanwhile. Kernels of one protocol, which share what is set up, come one
    after another."""
    for protocol in _PROTOCOLS:
        for each in (each for each in transitions if each.task == task):
            for code, kernel in zip(each.codes, each.kernels(protocol), strict=True):
                if kernel not in {row.kernel for row in rows}:
                    yield code, kernel, protocol


def outcome(each: Transition, before: VerdictRow | None, after: VerdictRow | None) -> str:
    """What a round did: its claim, where that holds. Behind a semicolon by how much."""
    if before is None or after is None:
        return _NOT_JUDGED + "not reached yet, or the suite cannot have it judged"
    for row, said in zip((before, after), _RIGHT[each.claim], strict=True):
        if row.status == CANNOT_BE_JUDGED:
            return _NOT_JUDGED + row.message
        if said and row.reason == Reason.SYNTAX_ERROR:
            return _NOT_JUDGED + "the text in the file is no Python, so it is not what was run"
    right = before.status == Status.CORRECT, after.status == Status.CORRECT
    if right != (True, True):
        done = (what for what, known in _RIGHT.items() if known == right)
        return next(done, f"wrong before and after ({after.reason})")
    if each.claim != "faster":
        return "right before and after"
    if not (before.speedup and after.speedup):
        return "not timed"
    ratio = log(after.speedup / before.speedup)
    # Those of independent measurements add in quadrature, as standard errors do.
    unclear = abs(ratio) <= hypot(_width(before), _width(after)) / 2
    what = "no clear difference" if unclear else "faster" if ratio > 0 else "slower"
    return f"{what}; x{exp(ratio):.4g}"


def _width(row: VerdictRow) -> float:
    low, high = row.speedup_low, row.speedup_high
    return log(high / low) if low and high else inf


def markdown(
    parts: Sequence[Part], rows: Sequence[VerdictRow], transitions: Sequence[Transition]
) -> str:
    """The page."""
    known, table = {row.kernel: row for row in rows}, []
    counts = {(p, claim): Counter[str]() for p in _PROTOCOLS for claim in _RIGHT}
    for each in transitions:
        cells = [each.task, each.rounds, each.claim + (f"; x{each.gain:.4g}" if each.gain else "")]
        for protocol in _PROTOCOLS:
            sides = [known.get(kernel) for kernel in each.kernels(protocol)]
            what = outcome(each, *sides)
            counts[protocol, each.claim][what.partition(";")[0]] += 1
            found = {f.partition(":")[0] for side in sides if side for f in side.findings}
            cells.append(f"{what} ({', '.join(sorted(found))})" if found else what)
        table.append(f"| {' | '.join(cells)} |")
    page = ["# What of the transitions holds", "", *dict.fromkeys(map(str, parts)), "", _SELECTED]
    for (protocol, claim), of in counts.items():
        judged = sum(count for what, count in of.items() if not what.startswith(_NOT_JUDGED))
        share = wilson(of[claim], judged) if judged else None
        told = f", {share.value:.0%} [{share.low:.0%}, {share.high:.0%}]" if share else ""
        page += ["", f"By {protocol}, {of[claim]} of {judged} judged were {claim}{told} "]
        page[-1] += f"({of.total()} said to be):"
        page += ["", *(f"* {what}: {count}" for what, count in of.most_common())]
    page += ["", f"| task | rounds | said to be | {' | '.join(_PROTOCOLS)} |", "|---" * 5 + "|"]
    return "\n".join([*page, *table]) + "\n"


if __name__ == "__main__":
    sys.exit(serve(command, "python -m experiments.bench.transitions"))
