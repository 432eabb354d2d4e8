"""A folder of kernels, named as KernelBench names them: found, judged, summed up."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from evaluator.batch.adjudication import WHOLE, Adjudication, JudgedClaim, is_ours
from evaluator.batch.claim import Claim
from evaluator.batch.eval_results import EvalResults, KernelName, refuse_foreign
from evaluator.batch.journal import Journal, journal_of
from evaluator.batch.parallel_judging import Outcome, judged
from evaluator.batch.verdict_lines import folder_lines, harmless, verdict_lines
from evaluator.errors import InfrastructureError
from evaluator.evaluation import Evaluation, EvaluationRequest, Status
from evaluator.executor.executor import Executor
from evaluator.settings import Settings
from problems.errors import UnknownProblemError, UsageError
from problems.loader import load_problem
from problems.plain_file import open_plain
from problems.problem import Problem
from problems.source_file import MOST_BYTES

_EXAMPLE = "level_1_problem_1_sample_0_kernel.py"


class NamedKernel(NamedTuple):
    name: KernelName
    path: Path
    problem: Problem


def kernels_in(folder: Path, suite: Path | None) -> list[NamedKernel]:
    """The kernels by level, problem and sample. What can't be judged, and files for problems that
    the suite does not have, are reported and passed over. Raises `UsageError` where none is left.
    """
    try:
        named = sorted(_named(folder))
    except OSError as error:
        raise UsageError(f"{folder} can't be listed: {error.strerror}") from None
    if not named:
        raise UsageError(f"{folder} holds no file named like {_EXAMPLE}")
    with suppress(UnknownProblemError):
        load_problem("", suite, files=False)  # a suite that is there has no such problem
    found: list[NamedKernel] = []
    for (level, number), group in groupby(named, lambda file: file[0][:2]):
        files = list(group)
        try:
            problem = load_problem(f"{level}/{number}", suite, files=False)
        except UsageError as error:
            for _, path in files:
                print(harmless(f"{path.name} is passed over: {error}"), file=sys.stderr)
        else:
            found += [NamedKernel(name, path, problem) for name, path in files]
    if not found:
        raise UsageError(f"{folder}: the suite has none of these problems; choose it with --suite")
    return found


def _named(folder: Path) -> Iterator[tuple[KernelName, Path]]:
    for path in sorted(folder.iterdir()):
        name = KernelName.of(path)
        wrong = f"its name is not like {_EXAMPLE}" if path.suffix.strip().lower() == ".py" else ""
        if name is not None:
            try:
                open_plain(path, MOST_BYTES).close()
                yield name, path
                continue
            except OSError as error:
                wrong = str(error.strerror)
        if wrong:
            # A name may hold what a terminal obeys.
            print(f"{path.name!r} is passed over: {wrong}", file=sys.stderr)


@dataclass(frozen=True)
class FolderReport:
    results: Path
    """In KernelBench's format."""
    as_json: bool = False
    """Each verdict on stdout, one a line, and not for a person on stderr."""
    claims: dict[KernelName, Claim] | None = None


def judge_folder(
    kernels: Sequence[NamedKernel],
    request: Callable[[Path, Problem, Settings], EvaluationRequest],
    executor: Executor,
    report: FolderReport,
    settings: Settings,
    beside: Settings | None = None,
    *,
    width: int,
) -> bool:
    """Judge the kernels, report each verdict in its turn, and write all of them. Returns whether
    all are correct.

    `beside`: of KernelBench's protocol, under which they are judged once more, for the claims. An
    interrupted command goes on with the verdicts that it left.

    Raises `UsageError` before anything is judged where a result can't be written, and as `judged`;
    what was found by then is written.
    """
    written = EvalResults(report.results, {kernel.name.level for kernel in kernels})
    if report.claims is not None:
        refuse_foreign(report.results.with_name(WHOLE), is_ours)
    journal = Journal(journal_of(report.results), executor)
    with suppress(InfrastructureError):  # the kernel's line, or the judge's, comes in its turn
        backend = request(*kernels[0][1:], settings).candidate.backend
        executor.prepare(min(width, len(kernels)), backend)

    def outcomes(under: Settings) -> Iterator[Outcome]:
        found = judged(
            [kernel[1:] for kernel in kernels],
            lambda path, problem: request(path, problem, under),
            journal,
            width=width,
        )
        for kernel, (outcome, first) in zip(kernels, found, strict=True):
            protocol = under.protocol if beside else None
            if report.as_json:
                print(json.dumps(_record(kernel, outcome, first, protocol)), flush=True)
            else:
                print(*_lines(kernel, outcome, first, protocol), sep="\n", file=sys.stderr)
            yield outcome

    ours: list[Outcome] = []
    theirs: list[Outcome] = []
    finished = False
    try:
        ours.extend(outcomes(settings))
        if beside is not None:
            theirs.extend(outcomes(beside))
        finished = True
    finally:
        paths = written.write(
            (kernel.name, kernel.problem.id, outcome)
            for kernel, outcome in zip(kernels, ours, strict=False)
        )
        lines = list(folder_lines(ours))
        if journal.taken:
            lines.insert(0, f"{journal.taken} verdicts are those of an interrupted command")
        if report.claims is not None and ours:
            rows = _judged_claims(kernels, report.claims, ours, theirs)
            adjudication = Adjudication(rows, settings.precision, settings.protocol)
            paths.append(adjudication.write(report.results.parent))
            lines += adjudication.lines()
        lines.append(f"results: {', '.join(map(str, paths))}")
        if finished:
            journal.remove()
        else:
            lines.append("unfinished: the same command goes on from here")
        print(*map(harmless, lines), sep="\n", file=sys.stderr)
    return all(
        isinstance(outcome, Evaluation) and outcome.status is Status.CORRECT for outcome in ours
    )


def _judged_claims(
    kernels: Sequence[NamedKernel],
    claims: dict[KernelName, Claim],
    ours: Sequence[Outcome],
    theirs: Sequence[Outcome],
) -> list[JudgedClaim]:
    """Of the kernels that there is an outcome of; `theirs` may be fewer."""
    beside = (*theirs, *[None] * (len(ours) - len(theirs)))
    return [
        JudgedClaim(
            kernel=kernel.path.name,
            problem=kernel.problem.id,
            level=kernel.name.level,
            claim=claims.get(kernel.name),
            evaluation=outcome if isinstance(outcome, Evaluation) else None,
            error="" if isinstance(outcome, Evaluation) else f"{type(outcome).__name__}: {outcome}",
            under_kernelbench=other if isinstance(other, Evaluation) else None,
        )
        for kernel, outcome, other in zip(kernels, ours, beside, strict=False)
    ]


def _record(
    kernel: NamedKernel, outcome: Outcome, first: Path | None, protocol: str | None
) -> dict[str, object]:
    place: dict[str, object] = {"kernel": kernel.path.name, "problem": kernel.problem.id}
    if protocol is not None:
        place["protocol"] = protocol
    if isinstance(outcome, InfrastructureError):
        return place | {"error": f"{type(outcome).__name__}: {outcome}"}
    judged_with = {"judged_with": first.name if first else ""}
    return place | judged_with | outcome.as_json()


def _lines(
    kernel: NamedKernel, outcome: Outcome, first: Path | None, protocol: str | None
) -> list[str]:
    under = [f"under --protocol {protocol}:"] if protocol is not None else []
    place = f"{kernel.path.name} on {kernel.problem.id}"
    if isinstance(outcome, InfrastructureError):
        said = harmless(f"  {type(outcome).__name__}: {outcome}")
        return [*under, f"{place}: cannot be judged", said]
    if first is not None:
        return [*under, f"{place}: {outcome.status}, as {first.name}, which is identical"]
    return [*under, *verdict_lines(kernel.path, kernel.problem, outcome)]
