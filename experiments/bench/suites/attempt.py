"""One request to an executor that may fail on our side: what came of it, and how long it took."""

from __future__ import annotations

import time
from dataclasses import dataclass

from evaluator.errors import InfrastructureError
from evaluator.evaluation import Evaluation, EvaluationRequest
from evaluator.executor.executor import Executor

_CHARACTERS = 300


@dataclass(frozen=True)
class Attempt:
    """An evaluation, or else why there is none."""

    evaluation: Evaluation | None
    failure: str
    """Class and text of the `InfrastructureError`; empty where there is an evaluation."""
    wall_s: float


def attempt(executor: Executor, request: EvaluationRequest) -> Attempt:
    """Ask once, and never raise an `InfrastructureError`."""
    begin = time.monotonic()
    try:
        evaluation = executor.evaluate(request)
    except InfrastructureError as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return Attempt(None, text[:_CHARACTERS], time.monotonic() - begin)
    return Attempt(evaluation, "", time.monotonic() - begin)
