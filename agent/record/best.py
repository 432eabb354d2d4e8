"""The best kernel of some turns: what a run is for."""

from __future__ import annotations

from collections.abc import Sequence

from agent.record.turn import TurnRecord
from evaluator.evaluation import Status


def best_of(turns: Sequence[TurnRecord]) -> TurnRecord | None:
    """The correct kernel whose speedup over eager is highest at the lower end of its interval.

    So a lucky, uncertain figure does not beat a sure one. The earliest call where they tie; a
    correct kernel that could not be timed comes after all that were. One with a finding is never
    the best.
    """
    correct = [
        turn
        for turn in turns
        if turn.evaluation.status is Status.CORRECT and not turn.evaluation.findings
    ]
    return min(correct, key=lambda turn: (-speedup_of(turn), turn.call), default=None)


def speedup_of(turn: TurnRecord) -> float:
    """Speedup over eager that can be counted on; 0 where nothing was timed."""
    timing = turn.evaluation.timing
    return timing.speedup_low if timing else 0.0
