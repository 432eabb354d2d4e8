"""Answers that a real server bills and that hold nothing, on the account of a whole run."""

from pathlib import Path

import pytest

from agent.llm.client import LiteLLMClient
from agent.llm.failure import RetryPolicy
from agent.record.result import Stop
from tests.agent.llm.provider_server import ProviderServer, answer, refusal
from tests.agent.stand_in import kernel_answer
from tests.agent.world import World

BILL = 1000e-6 + 500e-5
"""Dollars for one answer of the server's."""


def test_the_run_is_charged_for_what_could_not_be_used(
    server: ProviderServer, tmp_path: Path
) -> None:
    world = World(tmp_path)
    world.client = LiteLLMClient(policy=RetryPolicy(attempts=3), sleep=lambda seconds: False)
    prices = {"input_cost_per_token": 1e-6, "output_cost_per_token": 1e-5}
    settings = {
        "problems": ("first",),
        "budget": 2,
        "model": "openai/test-model",
        "model_args": {"api_base": server.url, **prices},
    }
    server.will(answer(choices=[]), answer(choices=[]), refusal(503))
    (found,) = world.run(**settings).problems
    assert (found.stop, found.turns) == (Stop.ERROR, 0)
    assert (found.spent.calls, found.spent.tokens) == (0, 2 * 1500)
    assert found.spent.cost_usd == pytest.approx(2 * BILL)

    server.replies.clear()
    server.will(answer(choices=[]), answer(kernel_answer(1)))
    (found,) = world.run(**settings).problems
    assert (found.stop, found.turns, found.spent.calls) == (Stop.CALLS, 2, 2)
    assert found.spent.tokens == 5 * 1500
    assert found.spent.cost_usd == pytest.approx(5 * BILL)
    bills = [turn.usage.cost_usd for turn in world.files.turns()]
    assert bills == [pytest.approx(4 * BILL), pytest.approx(BILL)]
