"""Build, verify and time one candidate: the question that a turn asks the judge."""

from __future__ import annotations

from evaluator.evaluation import Candidate, Evaluation, EvaluationRequest, Settings
from evaluator.executor.executor import Executor
from problems.problem import Problem, SizeClass


def evaluation_request(
    problem: Problem, candidate: Candidate, settings: Settings
) -> EvaluationRequest:
    """`candidate` against `problem` in the sizes that suit the device: large ones on a GPU."""
    return EvaluationRequest(
        problem_id=problem.id,
        reference=problem.reference(size_class_of(settings.device)),
        hidden_references=problem.hidden_references(size_class_of(settings.device)),
        candidate=candidate,
        settings=settings,
    )


def execute(
    executor: Executor, problem: Problem, candidate: Candidate, settings: Settings
) -> Evaluation:
    """Judge `candidate` on `problem`. Raises `InfrastructureError` when our side breaks."""
    return executor.evaluate(evaluation_request(problem, candidate, settings))


def size_class_of(device: str) -> SizeClass:
    """Which of a problem's sizes are in force on `cpu` or `cuda:N`."""
    return SizeClass.CPU if device == "cpu" else SizeClass.GPU
