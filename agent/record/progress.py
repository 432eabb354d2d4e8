"""Where a problem stands: what its recorded turns come to, carried on from turn to turn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

from agent.record.best import best_of
from agent.record.charge import charge_for
from agent.record.result import Spent
from agent.record.turn import TurnRecord


@dataclass(frozen=True)
class Progress:
    """Kept beside the records, so that nobody has to read them all to know the best one."""

    problem_hash: str | None = None
    """Of the first turn recorded; None before."""
    best: TurnRecord | None = None
    """As `best_of` chooses it."""
    last: TurnRecord | None = None
    """The turn with the highest call index."""
    correct: int = 0
    """Turns whose kernel is correct."""
    calls: tuple[int, ...] = ()
    """The call index of each recorded turn, in the order written."""
    spent: Spent = field(default_factory=Spent)

    @classmethod
    def of(cls, turns: Iterable[TurnRecord]) -> Self:
        """What these turns of one problem come to."""
        progress = cls()
        for turn in turns:
            progress = progress.after(turn)
        return progress

    def after(self, turn: TurnRecord) -> Self:
        """With one turn more."""
        known = [record for record in (self.best, turn) if record is not None]
        is_last = self.last is None or turn.call > self.last.call
        return type(self)(
            problem_hash=self.problem_hash or turn.problem_hash,
            best=best_of(known),
            last=turn if is_last else self.last,
            correct=self.correct + (turn.evaluation.status == "correct"),
            calls=(*self.calls, turn.call),
            spent=self.spent + charge_for(turn.usage, turn.seconds),
        )

    @property
    def turns(self) -> int:
        """Turns recorded."""
        return len(self.calls)

    @property
    def turns_since_best(self) -> int:
        """Turns whose call came after that of the best; all of them where none is correct."""
        return sum(self.best is None or call > self.best.call for call in self.calls)
