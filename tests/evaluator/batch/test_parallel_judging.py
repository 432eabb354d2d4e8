"""A folder of kernels: order, identical files, several at a time, failures of ours."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator.batch.parallel_judging import MOST_FAILURES, Outcome, judged
from evaluator.check import _source
from evaluator.errors import DeviceError, InfrastructureError, UnusableReferenceError
from evaluator.evaluation import (
    Correctness,
    Evaluation,
    EvaluationRequest,
    Seconds,
    Status,
)
from problems.loader import load_problem
from problems.problem import Problem
from tests.evaluator.made_requests import evaluation_request

SWISH, RMS_NORM = load_problem("level1_1_swish"), load_problem("level1_7_rms_norm")


class Judge:
    """Says in each message what it judged; `late` times out, `broken` is our failure."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        self.meeting: threading.Barrier | None = None

    def evaluate(self, request: EvaluationRequest) -> Evaluation:
        source = request.candidate.source
        self.seen[source] += 1
        if self.meeting is not None:
            self.meeting.wait(30)
        if source == "broken":
            raise DeviceError("it fell off the bus")
        if source == "other":
            raise DeviceError("it is held by another")
        if source == "unusable":
            raise UnusableReferenceError("its forward raised")
        if source == "late" or (source == "late once" and self.seen[source] == 1):
            return Evaluation(status=Status.TIMEOUT, reason="call_timeout")
        return Evaluation(
            status=Status.CORRECT,
            correctness=Correctness(calls_judged=1, calls_made=1),
            message=f"{request.problem_id} {source}",
            seconds=Seconds(judge=1.0),
        )


@pytest.fixture
def judge() -> Judge:
    return Judge()


def request(path: Path, problem: Problem) -> EvaluationRequest:
    return evaluation_request(_source(path, follows=False), problem.source, problem_id=problem.id)


def told(
    folder: Path, judge: Judge, *sources: str, problems: tuple[Problem, ...] = (), width: int = 1
) -> Iterator[tuple[Outcome, Path | None]]:
    kernels = []
    for index, source in enumerate(sources):
        path = folder / f"{index}.py"
        path.write_text(source)
        kernels.append((path, problems[index] if problems else SWISH))
    return judged(kernels, request, judge, width=width)


def test_in_order_however_many_at_a_time(tmp_path: Path, judge: Judge) -> None:
    judge.meeting = threading.Barrier(4)  # four must be at it at once
    sources = [f"kernel {index}" for index in range(8)]
    verdicts = list(told(tmp_path, judge, *sources, width=4))
    assert [verdict.message for verdict, _ in verdicts] == [f"level1_1_swish {s}" for s in sources]
    assert [first for _, first in verdicts] == [None] * 8


def test_identical_files_are_judged_once(tmp_path: Path, judge: Judge) -> None:
    verdicts = list(told(tmp_path, judge, "a", "b", "a", "a", width=3))
    assert judge.seen == {"a": 1, "b": 1}
    assert [first.name if first else "" for _, first in verdicts] == ["", "", "0.py", "0.py"]
    assert verdicts[2][0] == verdicts[0][0].model_copy(update={"seconds": Seconds()})


def test_the_same_file_for_another_problem_is_another_question(
    tmp_path: Path, judge: Judge
) -> None:
    problems = (SWISH, RMS_NORM, RMS_NORM)
    verdicts = list(told(tmp_path, judge, "a", "a", "a", problems=problems))
    assert judge.seen == {"a": 2}
    assert [first.name if first else "" for _, first in verdicts] == ["", "", "1.py"]


def test_a_later_attempt_that_was_in_time_is_taken_over(tmp_path: Path, judge: Judge) -> None:
    kernels = [(tmp_path / f"{number}.py", SWISH) for number in range(4)]
    for path, _ in kernels:
        path.write_text("late once")
    found = list(judged(kernels, request, judge, width=1))
    assert [first and first.name for _, first in found] == [None, None, "1.py", "1.py"]
    assert judge.seen["late once"] == 2


def test_a_failure_of_ours_is_the_outcome_of_its_kernel(tmp_path: Path, judge: Judge) -> None:
    outcomes = [outcome for outcome, _ in told(tmp_path, judge, "a", "broken", "b", "broken", "a")]
    assert [isinstance(outcome, DeviceError) for outcome in outcomes] == [0, 1, 0, 1, 0]
    assert judge.seen == {"a": 1, "broken": 2, "b": 1}  # a failure is not taken over


def test_a_kernel_that_has_gone_is_told_of_in_its_turn(tmp_path: Path, judge: Judge) -> None:
    found = told(tmp_path, judge, "a", "b", "c")
    (tmp_path / "0.py").unlink()
    gone, *_ = [outcome for outcome, _ in found]
    assert isinstance(gone, InfrastructureError) and "No such file" in str(gone)
    assert judge.seen == {"b": 1, "c": 1}


def test_what_keeps_failing_alike_is_given_up(tmp_path: Path, judge: Judge) -> None:
    problems = (SWISH, RMS_NORM) * 50
    outcomes = told(tmp_path, judge, "a", *["broken"] * 99, problems=problems)
    seen = []
    with pytest.raises(DeviceError, match="10 kernels in a row cannot be judged: it fell off"):
        for outcome, _ in outcomes:
            seen.append(outcome)
    assert len(seen) == 1 + MOST_FAILURES
    assert judge.seen["broken"] < 99


@pytest.mark.parametrize("between", ["a", "unusable", "other"])
def test_a_judge_that_still_works_is_not_given_up(
    tmp_path: Path, judge: Judge, between: str
) -> None:
    sources = [*["broken"] * (MOST_FAILURES - 1), between] * 3
    assert len(list(told(tmp_path, judge, *sources))) == len(sources)


def test_one_problem_that_a_judge_does_not_survive_is_not_the_end(
    tmp_path: Path, judge: Judge
) -> None:
    sources = [*["broken"] * (MOST_FAILURES + 5), "a"]
    problems = (*[SWISH] * (MOST_FAILURES + 5), RMS_NORM)
    *failed, last = told(tmp_path, judge, *sources, problems=problems)
    assert len(failed) == MOST_FAILURES + 5
    assert isinstance(last[0], Evaluation)
