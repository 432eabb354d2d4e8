"""A best kernel's second verdict and what it was on, in a file beside it, for whoever loads it."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from evaluator.audit_record import Life
from evaluator.evaluation import Backend, CaseTiming, Evaluation
from evaluator.record import Record
from evaluator.settings import Settings
from problems.case import Case
from problems.problem import Problem
from problems.sizes import SizeClass

SCHEMA = 1


class Proof(Record):
    """`best/<problem>.json`, for the kernel in `best/<problem>.py`."""

    schema_: int = Field(default=SCHEMA, alias="schema")
    problem: str
    candidate: str
    """Hash of the kernel, as in its turn's record."""
    backend: Backend
    settings: Settings
    cases: tuple[Case, ...]
    """One, without sizes, where the problem lists none."""
    evaluation: Evaluation
    weights: Path | None = None
    """The file of those that the problem came with."""

    @property
    def on_gpu(self) -> bool:
        return self.settings.device != "cpu"

    @property
    def timed(self) -> tuple[CaseTiming, ...]:
        """What the verdict says of each case."""
        only = CaseTiming(sizes={}, weight=1.0, timing=self.evaluation.timing)
        return self.evaluation.cases or (only,)

    def outcome(self, life: Life) -> str:
        """What became of a module that lived on so, and why; empty without an audit."""
        audit = self.evaluation.audit
        trials = audit.life if audit is not None else ()
        return next((f"{each.outcome} {each.note}" for each in trials if each.life is life), "")


def cases_proven(problem: Problem, settings: Settings) -> tuple[Case, ...]:
    size_class = SizeClass.of(settings.device)
    only = Case(sizes={}, weight=1.0, reference=problem.reference(size_class))
    return problem.cases(size_class) or (only,)
