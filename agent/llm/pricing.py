"""What an answer cost, and the most that a run can cost. Unknown is None, never 0.0."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent.llm.providers import split_model
from agent.record.completion import Usage
from problems.errors import UsageError

Arguments = Mapping[str, str | int | float | bool | None]
INPUT_PRICE = "input_cost_per_token"
OUTPUT_PRICE = "output_cost_per_token"


@dataclass(frozen=True)
class Prices:
    """US dollars per token."""

    input_usd: float
    output_usd: float

    def cost_usd(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Reasoning tokens are completion tokens. Cached prompt tokens are charged in full, so
        this errs on the high side."""
        return prompt_tokens * self.input_usd + completion_tokens * self.output_usd


def explicit_prices(arguments: Arguments) -> Prices | None:
    """The prices that the user stated in `--model-args`; None where there are none.

    0 is a price: that is how a server of one's own is declared free. Raises `UsageError` for one
    price without the other, and for what is no price.
    """
    stated = [arguments.get(INPUT_PRICE), arguments.get(OUTPUT_PRICE)]
    if stated == [None, None]:
        return None
    values: list[float] = []
    for value in stated:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
            raise UsageError(
                f"prices come in pairs, in US dollars per token: --model-args {INPUT_PRICE}=3e-6"
                f" --model-args {OUTPUT_PRICE}=15e-6 (0 and 0 for a server of your own)"
            )
        values.append(float(value))
    return Prices(*values)


def answer_cost_usd(arguments: Arguments, usage: Usage, response: Any) -> float | None:
    """What LiteLLM's `response` cost: the stated prices, else LiteLLM's.

    LiteLLM says 0.0 for models that it doesn't know; that is not believed.
    """
    prices = explicit_prices(arguments)
    if prices is not None:
        return prices.cost_usd(usage.prompt_tokens or 0, usage.completion_tokens or 0)
    cost = getattr(response, "_hidden_params", {}).get("response_cost")
    return float(cost) if isinstance(cost, int | float) and cost > 0 else None


def most_it_can_cost(
    model: str,
    prompt_tokens: int,
    max_tokens: int | None,
    calls: int,
    arguments: Arguments | None = None,
) -> float | None:
    """US dollars that `calls` completions cost at most; None where a price or a limit is unknown.

    `prompt_tokens` is the longest prompt; `max_tokens` the limit of an answer (None: the model's
    own). Of several prices for a kind of token the dearest that such a prompt can meet is taken.
    """
    if split_model(model)[0] is not None:
        return 0.0
    known = _known(model)
    limit = max_tokens if max_tokens is not None else known.get("max_output_tokens")
    prices = explicit_prices(arguments or {}) or _dearest(known, prompt_tokens)
    if prices is None or not isinstance(limit, int):
        return None
    return calls * prices.cost_usd(prompt_tokens, limit)


def _known(model: str) -> Mapping[str, Any]:
    """LiteLLM's entry for a model; empty where it has none."""
    from agent.llm.library import litellm

    library = litellm()
    from openai import OpenAIError

    try:
        name, provider, *_ = library.get_llm_provider(model)
    except OpenAIError:
        return {}
    for key in (model, f"{provider}/{name}", name):
        entry = library.model_cost.get(key)
        if entry is not None and str(entry.get("litellm_provider", "")).startswith(provider):
            return dict(entry)
    return {}


def _dearest(known: Mapping[str, Any], prompt_tokens: int) -> Prices | None:
    """LiteLLM prices some models higher for prompts above a number of tokens, and writes a
    prompt into its cache at a price of its own."""

    def dearest(*names: str) -> float:
        found = [0.0]
        for key, value in known.items():
            name, tier, rest = key.partition("_above_")
            from_tokens = re.fullmatch(r"(\d+)k_tokens", rest)
            # Prompt lengths are estimates: a tier counts from half of its threshold on.
            met = not tier or (from_tokens and prompt_tokens >= 500 * int(from_tokens.group(1)))
            if name in names and met and isinstance(value, int | float):
                found.append(float(value))
        return max(found)

    prices = Prices(
        dearest(INPUT_PRICE, "cache_creation_input_token_cost"),
        dearest(OUTPUT_PRICE, "output_cost_per_reasoning_token"),
    )
    return prices if prices.input_usd > 0 and prices.output_usd > 0 else None
