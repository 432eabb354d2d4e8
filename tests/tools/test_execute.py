"""One candidate, as it is put before the judge."""

from types import TracebackType
from typing import Self

from evaluator.evaluation import Backend, Candidate, Evaluation, EvaluationRequest, Status
from evaluator.settings import Settings
from problems.loader import load_problem
from problems.problem import SizeClass
from tools.execute import execute

VERDICT = Evaluation(status=Status.RUNTIME_ERROR, reason="forward_raised")


class Remembering:
    """An executor that remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[EvaluationRequest] = []

    def prepare(self, candidates: int = 1) -> None:
        pass

    def evaluate(self, request: EvaluationRequest) -> Evaluation:
        self.asked.append(request)
        return VERDICT

    def close(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass


def test_the_judge_is_asked_with_the_sizes_of_its_device() -> None:
    problem = load_problem("level1_4_softmax")
    small, large = (problem.reference(size) for size in (SizeClass.CPU, SizeClass.GPU))
    assert small != large
    candidate = Candidate(source="class ModelNew: ...", backend=Backend.CPP)
    executor = Remembering()
    for device, reference in (("cpu", small), ("cuda:1", large)):
        settings = Settings(device=device)
        assert execute(executor, problem, candidate, settings) == VERDICT
        asked = executor.asked[-1]
        assert (asked.problem_id, asked.candidate) == (problem.id, candidate)
        assert (asked.reference, asked.settings) == (reference, settings)
