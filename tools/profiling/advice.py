"""One piece of advice that a profile leads to, and what became of it in the next turn.

`tools/advice/rules.py` gives it. It predicts which figure will move, so that the next profile can
say whether it was right.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from evaluator.record import Record

MOST = 3
"""Pieces of advice a turn."""


class Direction(StrEnum):
    """Which way a figure should move."""

    UP = "up"
    DOWN = "down"


class Advice(Record):
    """What to change, on which figures that rests, and what would show that it worked."""

    rule: str
    """Its name in the table of rules."""
    evidence: str
    """What the figures say, in one sentence."""
    change: str
    """What to do about it, in one or two sentences."""
    figure: str
    """Name in `Profile.figures` of what should move."""
    direction: Direction
    before: float
    """That figure as it is."""
    gain: float = Field(ge=0.0, le=1.0)
    """Estimated share of the call's time that it could save. They are ranked by it."""


class AdviceScore(Record):
    """Whether a piece of advice, given with one profile, came true in the next."""

    rule: str
    figure: str
    direction: Direction
    before: float
    after: float | None
    """None: the next profile does not know the figure."""
    moved: bool | None
    """The figure moved as predicted, by more than it varies by itself; None: not known."""
    latency_before_us: float | None
    latency_after_us: float | None
    predicted_gain: float
