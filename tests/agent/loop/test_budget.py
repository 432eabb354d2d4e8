"""What is spent, and when that is enough."""

from pathlib import Path

import pytest

from agent.config.run_config import RunConfig
from agent.loop.problem_turns import exhausted
from agent.record.completion import Usage
from agent.record.result import Spent, Stop, charge_for
from agent.record.turn import TurnSeconds

SECONDS = TurnSeconds(model=1.0, build=2.0, judge=3.0, profile=4.0, device=2.5)


def run(**settings: object) -> RunConfig:
    return RunConfig.model_validate({"output": Path("x"), **settings})


def charge(cost: float | None = 0.25) -> Spent:
    usage = Usage(
        prompt_tokens=100,
        completion_tokens=30,
        reasoning_tokens=20,
        cached_tokens=50,
        cost_usd=cost,
    )
    return charge_for(usage, SECONDS)


def test_sums_are_sums() -> None:
    both = charge() + charge()
    assert (both.calls, both.tokens, both.cost_usd) == (2, 260, 0.5)
    assert (both.reasoning_tokens, both.cached_tokens) == (40, 100)
    assert both.seconds.device == 5.0
    assert both.wall_seconds == 20.0  # device seconds lie within


def test_one_unknown_price_makes_the_sum_unknown() -> None:
    both = charge() + charge(None)
    assert (both.cost_usd, both.priced_usd, both.unpriced) == (None, 0.25, 1)
    assert (both + charge()).cost_usd is None


def test_free_is_not_unknown() -> None:
    assert (charge(0.0) + charge(0.0)).cost_usd == 0.0


@pytest.mark.parametrize(
    ("limits", "stop"),
    [
        ({"budget": 2}, Stop.CALLS),
        ({"budget": 3}, None),
        ({"budget_tokens": 260}, Stop.TOKENS),
        ({"budget_tokens": 261}, None),
        ({"budget_usd": 0.5}, Stop.USD),
        ({"budget_usd": 0.51}, None),
        ({"budget_seconds": 20.0}, Stop.SECONDS),
        ({"budget_seconds": 20.1}, None),
        ({"budget": 2, "budget_tokens": 1}, Stop.CALLS),
    ],
)
def test_limits(limits: dict[str, object], stop: Stop | None) -> None:
    assert exhausted(run(**limits), charge() + charge()) == stop


def test_an_unknown_price_stops_only_where_dollars_count() -> None:
    spent = charge(None)
    assert exhausted(run(), spent) is None
    assert exhausted(run(budget_usd=9.0), spent) is Stop.UNPRICED
    assert exhausted(run(budget_usd=9.0, allow_unpriced=True), spent) is None
