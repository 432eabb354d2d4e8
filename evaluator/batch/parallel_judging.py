"""Many kernels, judged side by side and reported in order; identical ones are judged once."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from evaluator.errors import InfrastructureError, UnusableReferenceError
from evaluator.evaluation import Evaluation, EvaluationRequest, Seconds
from problems.plain_file import open_plain
from problems.problem import Problem
from problems.source_file import MOST_BYTES


class Evaluates(Protocol):
    def evaluate(self, request: EvaluationRequest) -> Evaluation: ...


Kernel = tuple[Path, Problem]
Outcome = Evaluation | InfrastructureError
"""A verdict, or the infrastructure failure that prevented it."""
MOST_FAILURES = 10
"""Equal infrastructure failures in a row after which no further kernel is tried."""
_PROBLEMS = 3
"""Distinct problems among them, if the folder has as many: one may be too large for a judge."""


def judged(
    kernels: Sequence[Kernel],
    request: Callable[[Path, Problem], EvaluationRequest],
    judge: Evaluates,
    *,
    width: int,
) -> Iterator[tuple[Outcome, Path | None]]:
    """The outcome of each kernel, in order, as soon as it is there and all before it are.

    With it comes the earlier identical file that it was copied from, or None. `width` evaluations
    are under way at a time. An infrastructure failure is the outcome of its kernel, and the others
    are judged. Raises `InfrastructureError` where every kernel fails alike; what has not begun by
    then is left.
    """

    def outcome_of(path: Path, problem: Problem) -> Outcome:
        try:
            return judge.evaluate(request(path, problem))
        except InfrastructureError as error:
            return error

    contents = [(problem.id, _digest(path)) for path, problem in kernels]
    known: dict[tuple[str, str], tuple[Evaluation, Path]] = {}
    failures: deque[tuple[str, str]] = deque(maxlen=MOST_FAILURES)
    needed = min(_PROBLEMS, len({problem.id for _, problem in kernels}))
    pool = ThreadPoolExecutor(width, thread_name_prefix="kernels")
    try:
        begun: dict[tuple[str, str], Future[Outcome]] = {}
        for kernel, content in zip(kernels, contents, strict=True):
            if content not in begun:
                begun[content] = pool.submit(outcome_of, *kernel)
        for (path, problem), content in zip(kernels, contents, strict=True):
            first = None
            outcome: Outcome
            if content in known:
                evaluation, first = known[content]
                outcome = evaluation.model_copy(update={"seconds": Seconds()})
            else:
                future = begun.pop(content, None)
                outcome = outcome_of(path, problem) if future is None else future.result()
                if isinstance(outcome, Evaluation) and outcome.is_lasting:
                    known[content] = outcome, path
            yield outcome, first
            if isinstance(outcome, Evaluation | UnusableReferenceError):
                failures.clear()
                continue
            failures.append((str(outcome), problem.id))
            said, problems = map(set, zip(*failures, strict=True))
            if len(failures) == MOST_FAILURES and len(said) == 1 and len(problems) >= needed:
                raise type(outcome)(f"{MOST_FAILURES} kernels in a row cannot be judged: {outcome}")
    finally:
        pool.shutdown(cancel_futures=True)


def _digest(path: Path) -> str:
    try:
        with open_plain(path, MOST_BYTES) as file:
            return hashlib.sha256(file.read(MOST_BYTES)).hexdigest()
    except OSError:
        return str(path)  # like no other: reading it once more will say what is wrong
