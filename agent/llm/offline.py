"""`offline/tuner`: the rule-based kernel writer, asked as a language model would be."""

from __future__ import annotations

import threading
import time

from agent.record.completion import (
    Completion,
    CompletionRequest,
    ModelClient,
    Tell,
    Usage,
    estimated_tokens,
    unheard,
)
from problems.errors import UsageError


def tuner_client(name: str, stop: threading.Event) -> ModelClient:
    """The client for `offline/tuner`, whose answers take no wait. Raises `UsageError`."""
    if name != "tuner":
        raise UsageError(f"there is no offline/{name}; the only one is offline/tuner")
    return TunerClient()


class TunerClient:
    """Answers from messages, temperature and seed alone: it never sees where the answer belongs.
    Tokens are estimated from characters; it costs nothing."""

    def complete(
        self, request: CompletionRequest, tell: Tell = unheard, so_far: Tell = unheard
    ) -> Completion:
        """Ask `agent.tuner`."""
        from agent.tuner import answer

        began = time.monotonic()
        asked = [message.model_dump() for message in request.messages]
        text = answer(asked, request.temperature, request.seed)
        usage = Usage(
            prompt_tokens=estimated_tokens(message.content for message in request.messages),
            completion_tokens=estimated_tokens([text]),
            cost_usd=0.0,
        )
        return Completion(
            text=text,
            model_asked=request.model,
            model_answered="tuner",
            usage=usage,
            seconds=time.monotonic() - began,
        )
