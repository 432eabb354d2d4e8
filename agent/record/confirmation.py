"""A second verdict on a problem's best kernel, from nothing, after the search has ended.

The best of several measured figures is too high on average: luck is a part of what made it the
best. The second measurement has no part in the choice.
"""

from __future__ import annotations

from pydantic import Field

from agent.record.turn import TurnRecord
from evaluator.evaluation import Evaluation, Status
from evaluator.record import Record
from evaluator.settings import Settings

SCHEMA = 1
_LONGER, _USUAL_S = 8.0, 4.0
"""Times the time that the search spent on timing a kernel; where that is more than usual, twice."""


class Confirmation(Record):
    """One line of `confirmations/<problem>.jsonl`."""

    schema_: int = Field(default=SCHEMA, alias="schema")
    problem: str
    candidate: str
    """Hash of the kernel, as in its turn's record."""
    sample: int
    turn: int
    found: float | None
    """Its speedup over eager in the search; None where it was not timed."""
    chooses: bool = False
    """It was measured to choose among several, and states nothing; it has no audit."""
    evaluation: Evaluation
    """The second verdict."""

    @property
    def what(self) -> str:
        return "measured to choose" if self.chooses else "judged again"

    @property
    def holds(self) -> bool:
        """Whether the kernel is correct this time as well, without a finding."""
        return self.evaluation.status is Status.CORRECT and not self.evaluation.findings


def confirmation_of(
    record: TurnRecord, evaluation: Evaluation, *, chooses: bool = False
) -> Confirmation:
    assert record.candidate is not None
    timing = record.evaluation.timing
    return Confirmation(
        problem=record.problem,
        candidate=record.candidate,
        sample=record.sample,
        turn=record.turn,
        found=timing.speedup if timing else None,
        chooses=chooses,
        evaluation=evaluation,
    )


def confirming(settings: Settings, *, chooses: bool = False) -> Settings:
    """How a best kernel is judged again: longer, however clear it is, at all cases, with fresh
    workers on both sides, and audited unless audits are off. `chooses`: see `Confirmation`."""
    audit = "never" if chooses or settings.audit == "never" else "always"
    longer = min(_LONGER * settings.timing_seconds, max(_USUAL_S, 2 * settings.timing_seconds))
    return settings.model_copy(
        update={
            "timing_seconds": longer,
            "clear_width": settings.relative_width,
            "audit": audit,
            "fresh_workers": True,
            "timed_cases": None,
        }
    )
