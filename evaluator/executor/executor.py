"""The seam between those who want a verdict and the processes that make one."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from evaluator.evaluation import Backend, Evaluation, EvaluationRequest
from evaluator.rival import CheckRequest, Rival


class Executor(AbstractContextManager["Executor"], Protocol):
    """Judges candidates, one at a time per device; safe to call from several threads."""

    def prepare(self, candidates: int = 1, backend: Backend = Backend.CUDA) -> None:
        """Begin to start what the first evaluations of that many at a time need; does not wait."""
        ...

    def check(self, request: CheckRequest) -> Rival:
        """See that the problem's candidates can be judged here, and what PyTorch reaches.

        That may be known from earlier. Raises the `InfrastructureError` that an evaluation would
        meet: `UnusableReferenceError` where the reference cannot run here.
        """
        ...

    def build_ahead(self, request: EvaluationRequest) -> None:
        """Begin to build a candidate that is likely to be judged soon, where that disturbs nothing
        that is timed. Does not wait, and never raises: only the build cache may gain by it."""
        ...

    def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Judge one candidate. Raises `InfrastructureError` when our side breaks."""
        ...

    def close(self) -> None: ...
