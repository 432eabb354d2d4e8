"""The answer to one candidate: the verdict, what went wrong in words, and where its time goes."""

from __future__ import annotations

from evaluator.errors import ProfilerError
from evaluator.evaluation import Evaluation, EvaluationRequest, Status
from evaluator.executor.local import LocalExecutor
from tools.advice.words import advice_lines
from tools.diagnosis.diagnose import explain
from tools.profile import profile


def verdict(
    executor: LocalExecutor, request: EvaluationRequest, *, profiles: bool
) -> dict[str, object]:
    """The fields of an answer. Raises `InfrastructureError` where there is no verdict."""
    evaluation = executor.evaluate(request)
    answer: dict[str, object] = {"evaluation": evaluation.as_json()}
    if words := explain(evaluation, request.candidate.source):
        answer["diagnosis"] = words
    if profiles and evaluation.status is Status.CORRECT:
        answer["profile"] = _profile(executor, request, evaluation)
    return answer


def _profile(
    executor: LocalExecutor, request: EvaluationRequest, evaluation: Evaluation
) -> dict[str, object]:
    try:
        with executor.for_profiler() as device:
            found = profile(request.on(device), evaluation)
    except ProfilerError as error:
        return {"error": " ".join(str(error).split())}
    return {
        "bottleneck": found.bottleneck,
        "summary": found.summary,
        "advice": advice_lines(found.advice),
    }
