"""`offline/tuner`: the rule-based kernel writer, asked as a language model would be."""

from __future__ import annotations

from collections.abc import Sequence

from agent.llm.provider import Place, ProviderAnswer
from agent.record.completion import Message, Usage
from agent.record.tokens import estimated_tokens
from problems.errors import UsageError


class OfflineProvider:
    """Answers from the request alone: messages, temperature, seed. It never learns the place."""

    arguments: frozenset[str] = frozenset()

    def check(self, name: str) -> None:
        """Raise `UsageError` unless `name` is `tuner`."""
        if name != "tuner":
            raise UsageError(f"there is no offline/{name}; the only one is offline/tuner")

    def answer(
        self,
        name: str,
        messages: Sequence[Message],
        temperature: float | None,
        seed: int | None,
        place: Place,
    ) -> ProviderAnswer:
        """Ask `agent.tuner`. Tokens are estimated from characters; it costs nothing."""
        from agent.tuner import answer

        asked = [message.model_dump() for message in messages]
        text = answer(asked, temperature, seed)
        usage = Usage(
            prompt_tokens=estimated_tokens(message.content for message in messages),
            completion_tokens=estimated_tokens([text]),
            cost_usd=0.0,
        )
        return ProviderAnswer(text=text, model=name, usage=usage)
