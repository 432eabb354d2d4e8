"""What a turn costs its problem."""

from __future__ import annotations

from agent.record.completion import Usage
from agent.record.result import Spent
from agent.record.turn import TurnRecord, TurnSeconds


def charge_for(usage: Usage, seconds: TurnSeconds) -> Spent:
    """One billed completion."""
    return Spent(
        calls=1,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        cached_tokens=usage.cached_tokens,
        cost_usd=usage.cost_usd,
        priced_usd=usage.cost_usd or 0.0,
        unpriced=int(usage.cost_usd is None),
        seconds=seconds,
    )


def charge_for_wasted(usage: Usage) -> Spent:
    """Answers that were billed and could not be used: tokens and dollars, but no completion."""
    return charge_for(usage, TurnSeconds()).model_copy(update={"calls": 0})


def spent_on(turns: list[TurnRecord]) -> Spent:
    """What recorded turns came to."""
    return sum((charge_for(turn.usage, turn.seconds) for turn in turns), Spent())
