import pytest

from agent.llm.pricing import explicit_prices, most_it_can_cost
from problems.errors import UsageError

STATED = {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6}


def test_stated_prices_come_in_pairs():
    assert explicit_prices({}) is None
    prices = explicit_prices(STATED)
    assert prices is not None
    assert prices.cost_usd(1000, 100) == pytest.approx(1000 * 1e-6 + 100 * 2e-6)
    for wrong in (
        {"input_cost_per_token": 1e-6},
        {**STATED, "output_cost_per_token": "cheap"},
        {**STATED, "output_cost_per_token": -1e-6},
        {**STATED, "output_cost_per_token": 15},  # meant per million
        {**STATED, "output_cost_per_token": True},
    ):
        with pytest.raises(UsageError, match="per token"):
            explicit_prices(wrong)


@pytest.mark.parametrize(
    ("model", "arguments", "priced"),
    [
        ("offline/tuner", {}, True),
        ("relay/anywhere", {}, True),
        ("openai/gpt-4o", {}, True),
        ("openai/gpt-9-mega", {}, False),
        ("openai/test-model", {}, False),
        ("openai/test-model", STATED, True),
        ("ollama/llama3", {}, False),
        ("ollama/llama3", {"input_cost_per_token": 0, "output_cost_per_token": 0}, True),
        ("no-such-model", {}, False),
    ],
)
def test_what_has_a_price(model, arguments, priced):
    assert (most_it_can_cost(model, 1, 1, 1, arguments) is not None) is priced


def test_the_most_that_it_can_cost():
    assert most_it_can_cost("offline/tuner", 10_000, None, 10) == 0.0
    # OpenAI's prices of 2024-10 for gpt-4o, and its limit of 16384 tokens an answer.
    assert most_it_can_cost("openai/gpt-4o", 1000, 2000, 10) == pytest.approx(
        10 * (1000 * 2.5e-6 + 2000 * 1e-5)
    )
    assert most_it_can_cost("openai/gpt-4o", 0, None, 1) == pytest.approx(16384e-5)
    assert most_it_can_cost("openai/test-model", 1000, 2000, 2, STATED) == pytest.approx(0.01)
    assert most_it_can_cost("openai/test-model", 1000, None, 2, STATED) is None  # no limit known


def test_long_prompts_meet_the_higher_price():
    model = "gemini/gemini-2.5-pro"
    short, long = (most_it_can_cost(model, n, 0, 1) for n in (10_000, 300_000))
    assert short is not None
    assert long is not None
    assert long / 300_000 == pytest.approx(2 * short / 10_000)
