"""One kernel to build, judge and profile."""

from __future__ import annotations

from dataclasses import dataclass

from evaluator.evaluation import EvaluationRequest
from evaluator.ipc.build_request import BuildRequest
from tests.advice.result import Role


@dataclass(frozen=True)
class Job:
    """What the judge is asked, and what can be built beforehand."""

    case: str
    side: Role
    request: EvaluationRequest
    build: BuildRequest | None = None
    """What the candidate will ask of the builder; None leaves the build to the judge."""
