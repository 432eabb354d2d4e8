"""What the graph carries from node to node: a bookmark. The book itself is the run directory."""

from __future__ import annotations

from typing import TypedDict


class TurnState(TypedDict):
    """Where a sample of a problem stands. Ids and numbers only, so that a checkpoint is small."""

    problem: str
    sample: int
    turn: int
    """The turn in progress: the first one that is not recorded."""
    wants_profile: bool
    """This turn's kernel is correct and the feedback needs its profile."""
    stop: str
    """Why no turn follows (`Stop`); empty while one does."""


class TurnUpdate(TypedDict, total=False):
    """What a node changes. LangGraph ignores a misspelt key without a word; mypy does not."""

    turn: int
    wants_profile: bool
    stop: str


def first_state(problem: str, sample: int, turn: int) -> TurnState:
    """The state at the beginning of a turn."""
    return TurnState(problem=problem, sample=sample, turn=turn, wants_profile=False, stop="")
