"""One candidate, as it is put before the judge."""

from typing import cast

from evaluator.evaluation import Backend, Candidate, Evaluation, EvaluationRequest, Status
from evaluator.executor.executor import Executor
from evaluator.settings import Settings
from problems.loader import load_problem
from problems.sizes import SizeClass
from tools.execute import execute

VERDICT = Evaluation(status=Status.RUNTIME_ERROR, reason="forward_raised")


class Remembering:
    """An executor that remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[EvaluationRequest] = []

    def evaluate(self, request: EvaluationRequest) -> Evaluation:
        self.asked.append(request)
        return VERDICT


def test_the_judge_is_asked_with_the_sizes_of_its_device() -> None:
    problem = load_problem("level1_4_softmax")
    small, large = (problem.reference(size) for size in (SizeClass.CPU, SizeClass.GPU))
    assert small != large
    candidate = Candidate(source="class ModelNew: ...", backend=Backend.CPP)
    executor = Remembering()
    for device, reference in (("cpu", small), ("cuda:1", large)):
        settings = Settings(device=device)
        assert execute(cast(Executor, executor), problem, candidate, settings) == VERDICT
        asked = executor.asked[-1]
        assert (asked.problem_id, asked.candidate) == (problem.id, candidate)
        assert (asked.reference, asked.settings) == (reference, settings)
