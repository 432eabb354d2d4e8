"""The progress of a problem: its best kernel so far, and what its recorded turns come to."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Self

from agent.record.result import Spent, charge_for
from agent.record.turn import TurnRecord
from evaluator.evaluation import Status

_REACHED = list(Status)
"""From the furthest from a kernel to a correct one."""


_MOST_CONTENDERS = 3


def best_of(turns: Iterable[TurnRecord]) -> TurnRecord | None:
    """The correct kernel whose speedup over eager is highest at the lower end of its interval.

    So a lucky, uncertain figure does not beat a sure one. The earliest call where they tie; a
    correct kernel that could not be timed comes after all that were. One with a finding is never
    the best.
    """
    return min(filter(_may_be_best, turns), key=rank, default=None)


def contenders_of(turns: Iterable[TurnRecord]) -> list[TurnRecord]:
    """The best kernel and others that may be as fast, whose intervals reach its lower end: three at
    most, as `best_of` sorts them."""
    kernels: dict[str | None, TurnRecord] = {}
    for turn in sorted(filter(_may_be_best, turns), key=rank):
        kernels.setdefault(turn.candidate, turn)
    found = list(kernels.values())
    low = next((t.speedup_low for each in found[:1] if (t := each.evaluation.timing)), math.inf)
    rest = (each for each in found[1:] if (t := each.evaluation.timing) and t.speedup_high >= low)
    return [*found[:1], *islice(rest, _MOST_CONTENDERS - 1)]


def rank(turn: TurnRecord) -> tuple[bool, int, float, int]:
    """Sorts turns as `best_of` does; those that it leaves out follow, by how far they came."""
    reached, timing = _REACHED.index(turn.evaluation.status), turn.evaluation.timing
    return not _may_be_best(turn), -reached, -timing.speedup_low if timing else 0.0, turn.call


def _may_be_best(turn: TurnRecord) -> bool:
    return turn.evaluation.status is Status.CORRECT and not turn.evaluation.findings


@dataclass(frozen=True)
class Progress:
    """Kept beside the records, so that they need not all be read to know the best one."""

    problem_hash: str | None = None
    """Of the first turn recorded; None before."""
    best: TurnRecord | None = None
    """As `best_of` chooses it."""
    last: TurnRecord | None = None
    """The turn with the highest call index."""
    correct: int = 0
    """Turns whose kernel is correct."""
    turns: int = 0
    spent: Spent = field(default_factory=Spent)

    def after(self, turn: TurnRecord) -> Self:
        known = [record for record in (self.best, turn) if record is not None]
        is_last = self.last is None or turn.call > self.last.call
        return type(self)(
            problem_hash=self.problem_hash or turn.problem_hash,
            best=best_of(known),
            last=turn if is_last else self.last,
            correct=self.correct + (turn.evaluation.status == "correct"),
            turns=self.turns + 1,
            spent=self.spent + charge_for(turn.usage, turn.seconds),
        )
