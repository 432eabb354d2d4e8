"""What the judge said about one mutant, as one line of JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from evaluator.evaluation import Backend, Candidate, Evaluation, EvaluationRequest, Status
from evaluator.executor.local import LocalExecutor
from evaluator.settings import Settings
from tests.mutation.edit import Kind
from tests.mutation.mutant import Mutant
from tests.mutation.subject import Origin, Subject

KILLING = (Status.INCORRECT, Status.RUNTIME_ERROR, Status.TIMEOUT, Status.INTEGRITY)
QUICK_S, USUAL_S = 0.001, 2.0
"""Seconds of timing. Three calls are verified before it, and a quarter of those that are timed: of
six at least."""


class Judged(BaseModel):
    """One mutant and its end; a subject itself has no rule."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")

    id: str
    subject: str
    family: str
    origin: Origin
    kind: Kind | None
    rule: str
    shown: str
    status: Status
    reason: str
    message: str
    error_ratio: float | None
    error_ratio_limit: float | None
    calls_judged: int
    seconds: float

    @property
    def built(self) -> bool:
        """Whether it was a program at all."""
        return self.status is not Status.BUILD_ERROR

    @property
    def killed(self) -> bool:
        return self.status in KILLING


def judge_subject(executor: LocalExecutor, subject: Subject) -> Judged:
    """The verdict on a right kernel."""
    evaluation = _evaluate(executor, subject, subject.source, QUICK_S)
    return _record(evaluation, f"subject {subject.name}", subject, None, "", "")


def judge(executor: LocalExecutor, mutant: Mutant, timing_s: float = QUICK_S) -> Judged:
    """The verdict on a wrong one."""
    evaluation = _evaluate(executor, mutant.subject, mutant.source, timing_s)
    rule = mutant.rule
    return _record(evaluation, mutant.id, mutant.subject, rule.kind, rule.name, mutant.shown)


def read(path: Path) -> Iterator[Judged]:
    """The records of a file that may not exist yet."""
    if path.exists():
        for line in path.read_text().splitlines():
            yield Judged.model_validate_json(line)


def _evaluate(
    executor: LocalExecutor, subject: Subject, source: str, timing_s: float
) -> Evaluation:
    return executor.evaluate(
        EvaluationRequest(
            problem_id="mutation",
            reference=subject.reference,
            candidate=Candidate(source=source, backend=Backend.CPP),
            settings=Settings(timing_seconds=timing_s, call_timeout_s=20.0),
        )
    )


def _record(
    evaluation: Evaluation, id: str, subject: Subject, kind: Kind | None, rule: str, shown: str
) -> Judged:
    found = evaluation.correctness
    return Judged(
        id=id,
        subject=subject.name,
        family=subject.family,
        origin=subject.origin,
        kind=kind,
        rule=rule,
        shown=shown,
        status=evaluation.status,
        reason=evaluation.reason,
        message=evaluation.message[:200] if evaluation.status in KILLING else "",
        error_ratio=found.error_ratio if found else None,
        error_ratio_limit=found.error_ratio_limit if found else None,
        calls_judged=found.calls_judged if found else 0,
        seconds=round(evaluation.seconds.build + evaluation.seconds.judge, 3),
    )
