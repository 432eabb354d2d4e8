"""The best kernel of some turns: what a run is for."""

from __future__ import annotations

from collections.abc import Iterable

from agent.record.turn import TurnRecord
from evaluator.evaluation import Status

_REACHED = list(Status)
"""From the furthest from a kernel to a correct one."""


def best_of(turns: Iterable[TurnRecord]) -> TurnRecord | None:
    """The correct kernel whose speedup over eager is highest at the lower end of its interval.

    So a lucky, uncertain figure does not beat a sure one. The earliest call where they tie; a
    correct kernel that could not be timed comes after all that were. One with a finding is never
    the best.
    """
    return min(filter(_may_be_best, turns), key=rank, default=None)


def rank(turn: TurnRecord) -> tuple[bool, int, float, int]:
    """Sorts turns as `best_of` does; those that it leaves out follow, by how far they came."""
    reached = _REACHED.index(turn.evaluation.status)
    return not _may_be_best(turn), -reached, -speedup_of(turn), turn.call


def speedup_of(turn: TurnRecord) -> float:
    """Speedup over eager that can be counted on; 0 where nothing was timed."""
    timing = turn.evaluation.timing
    return timing.speedup_low if timing else 0.0


def _may_be_best(turn: TurnRecord) -> bool:
    return turn.evaluation.status is Status.CORRECT and not turn.evaluation.findings
