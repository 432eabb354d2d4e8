"""Many kernels, judged side by side and told in their order; identical ones are judged once."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from evaluator.evaluation import Evaluation, EvaluationRequest, Seconds
from evaluator.executor.executor import Executor
from problems.problem import Problem

Kernel = tuple[Path, Problem]


def judged(
    kernels: Sequence[Kernel],
    request: Callable[[Path, Problem], EvaluationRequest],
    executor: Executor,
    *,
    width: int,
) -> Iterator[tuple[Evaluation, Path | None]]:
    """The evaluation of each kernel, in order, as soon as it is there and all before it are.

    Beside it stands the earlier file that it was taken over from, with no seconds of its own, or
    None. `width` evaluations are under way at a time. Raises `InfrastructureError` when our side
    breaks; what has not begun by then is left.
    """

    def judge(path: Path, problem: Problem) -> Evaluation:
        return executor.evaluate(request(path, problem))

    contents = [(problem.id, _digest(path)) for path, problem in kernels]
    begun: deque[Future[Evaluation] | None] = deque()
    known: dict[tuple[str, str], tuple[Evaluation, Path]] = {}
    pool = ThreadPoolExecutor(width, thread_name_prefix="kernels")
    try:
        seen = set()
        for kernel, content in zip(kernels, contents, strict=True):
            begun.append(None if content in seen else pool.submit(judge, *kernel))
            seen.add(content)
        for (path, problem), content in zip(kernels, contents, strict=True):
            future = begun.popleft()
            if future is None and known[content][0].is_lasting:
                evaluation, first = known[content]
                yield evaluation.model_copy(update={"seconds": Seconds()}), first
                continue
            evaluation = judge(path, problem) if future is None else future.result()
            known.setdefault(content, (evaluation, path))
            yield evaluation, None
    finally:
        pool.shutdown(cancel_futures=True)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
