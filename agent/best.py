"""The best kernel of some turns: what a run is for."""

from __future__ import annotations

from collections.abc import Sequence

from agent.record import TurnRecord
from evaluator.evaluation import Status


def best_of(turns: Sequence[TurnRecord]) -> TurnRecord | None:
    """The correct kernel with the highest speedup over eager, the earliest call where they tie.

    A correct kernel that could not be timed comes after all that were.
    """
    correct = [turn for turn in turns if turn.evaluation.status is Status.CORRECT]
    return min(correct, key=lambda turn: (-speedup_of(turn), turn.call), default=None)


def speedup_of(turn: TurnRecord) -> float:
    """Speedup over eager; 0 where nothing was timed."""
    timing = turn.evaluation.timing
    return timing.speedup if timing else 0.0
