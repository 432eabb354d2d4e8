"""What the graph carries from node to node: one turn, as a value."""

from __future__ import annotations

from typing import TypedDict

from agent.record.turn import PendingTurn
from agent.record.turn_log import TurnKey


class TurnState(TypedDict):
    """The turn in progress. Its texts lie in the run directory under their hashes."""

    key: TurnKey
    turn: PendingTurn | None
    """None before `propose`."""
    ended: bool
    """No turn follows."""


class TurnUpdate(TypedDict, total=False):
    """What a node changes. LangGraph ignores a misspelt key without a word; mypy does not."""

    key: TurnKey
    turn: PendingTurn | None
    ended: bool


def first_state(key: TurnKey) -> TurnState:
    """The state at the beginning of a turn."""
    return TurnState(key=key, turn=None, ended=False)
