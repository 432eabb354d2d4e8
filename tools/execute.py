"""What is asked of the judge: to build, verify and time a candidate."""

from __future__ import annotations

from evaluator.evaluation import Candidate, Evaluation, EvaluationRequest
from evaluator.executor.executor import Executor
from evaluator.settings import Settings
from problems.problem import Problem


def execute(
    executor: Executor, problem: Problem, candidate: Candidate, settings: Settings
) -> Evaluation:
    """Judge `candidate` on `problem`. Raises `InfrastructureError` when our side breaks."""
    return executor.evaluate(EvaluationRequest.of(problem, settings, candidate=candidate))


def own_module(reference: str) -> str:
    """The source of a candidate that is the problem's own module."""
    return f"{reference}\n\nclass ModelNew(Model):\n    pass\n"
