"""What is asked of the judge: to set a problem up; to build, verify and time a candidate."""

from __future__ import annotations

from evaluator.evaluation import Candidate, Evaluation, EvaluationRequest, ProblemRequest
from evaluator.executor.executor import Executor
from evaluator.settings import Settings
from problems.problem import Problem
from problems.sizes import SizeClass


def problem_request(problem: Problem, settings: Settings) -> ProblemRequest:
    """`problem` in the sizes that suit the device: large ones on a GPU."""
    size_class = size_class_of(settings.device)
    return ProblemRequest(
        problem_id=problem.id,
        reference=problem.reference(size_class),
        hidden_references=problem.hidden_references(size_class),
        settings=settings,
    )


def evaluation_request(
    problem: Problem, candidate: Candidate, settings: Settings
) -> EvaluationRequest:
    """`candidate` against `problem` in the sizes that suit the device."""
    return EvaluationRequest(**dict(problem_request(problem, settings)), candidate=candidate)


def execute(
    executor: Executor, problem: Problem, candidate: Candidate, settings: Settings
) -> Evaluation:
    """Judge `candidate` on `problem`. Raises `InfrastructureError` when our side breaks."""
    return executor.evaluate(evaluation_request(problem, candidate, settings))


def own_module(reference: str) -> str:
    """The source of a candidate that is the problem's own module."""
    return f"{reference}\n\nclass ModelNew(Model):\n    pass\n"


def size_class_of(device: str) -> SizeClass:
    """Which of a problem's sizes are in force on `cpu` or `cuda:N`."""
    return SizeClass.CPU if device == "cpu" else SizeClass.GPU
