"""Many kernels, judged side by side and told in their order; identical ones are judged once."""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path

from evaluator.evaluation import Evaluation, EvaluationRequest, Seconds
from evaluator.executor.executor import Executor
from problems.problem import Problem

Kernel = tuple[Path, Problem]
AHEAD = 16
"""How far others may be ahead of the slowest, in multiples of those that are under way."""


def judged(
    kernels: Sequence[Kernel],
    request: Callable[[Path, Problem], EvaluationRequest],
    executor: Executor,
    *,
    width: int,
) -> Iterator[tuple[Evaluation, Path | None]]:
    """The evaluation of each kernel, in order, as soon as it is there and all before it are.

    Beside it stands the earlier file that it was taken over from, with no seconds of its own, or
    None. `width` evaluations are under way at a time. Kept in memory are those that an identical
    file still waits for, and those that wait for a slower one before them, of which there is a
    limit. Raises `InfrastructureError` when our side breaks; what has not begun by then is left.
    """

    def judge(path: Path, problem: Problem) -> Evaluation:
        return executor.evaluate(request(path, problem))

    contents = [(problem.id, _digest(path)) for path, problem in kernels]
    left = Counter(contents)
    known: dict[tuple[str, str], tuple[Evaluation, Path]] = {}
    pool = ThreadPoolExecutor(width, thread_name_prefix="kernels")

    def beginnings() -> Iterator[Future[Evaluation] | None]:
        seen = set()
        for kernel, content in zip(kernels, contents, strict=True):
            yield None if content in seen else pool.submit(judge, *kernel)
            seen.add(content)

    try:
        to_begin = beginnings()
        begun = deque(islice(to_begin, AHEAD * width))
        for (path, problem), content in zip(kernels, contents, strict=True):
            future = begun.popleft()
            first = None
            if future is None and known[content][0].is_lasting:
                evaluation, first = known[content]
                evaluation = evaluation.model_copy(update={"seconds": Seconds()})
            else:
                evaluation = judge(path, problem) if future is None else future.result()
                if content not in known or evaluation.is_lasting:
                    known[content] = evaluation, path
            left[content] -= 1
            if not left[content]:
                del known[content]
            begun.extend(islice(to_begin, 1))
            yield evaluation, first
    finally:
        pool.shutdown(cancel_futures=True)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
