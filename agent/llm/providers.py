"""Our own sources of completions, none of which is a language model behind HTTP. All are free."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent.llm.failure import ModelRefusedError
from agent.llm.recording import Recording, load_recording
from agent.llm.relay import relay_client
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


class ReplayClient:
    """Gives recorded answers, whatever the prompt says now. Tokens are as recorded; the cost is
    what giving them again costs: nothing."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def complete(
        self, request: CompletionRequest, tell: Tell = unheard, so_far: Tell = unheard
    ) -> Completion:
        place = (request.problem, request.sample, request.turn)
        found = self._recording.answers.get(place)
        if found is None:
            raise ModelRefusedError(self._recording.missing(*place))
        return Completion(
            text=found.text,
            reasoning=found.reasoning,
            finish_reason=found.finish_reason,
            model_asked=request.model,
            model_answered=found.model or "unnamed",
            usage=found.usage.model_copy(update={"cost_usd": 0.0}),
            seconds=0.0,
        )


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


@dataclass(frozen=True)
class Provider:
    client: Callable[[str, threading.Event], ModelClient]
    """What answers for a name, safe to share between threads. The event, once set, ends every wait.
    Raises `UsageError` where that name can't answer."""
    arguments: frozenset[str] = frozenset()
    """The `--model-args` that it takes."""


PROVIDERS = {
    "offline": Provider(tuner_client),
    "replay": Provider(lambda name, _: ReplayClient(load_recording(Path(name)))),
    "relay": Provider(relay_client, frozenset({"timeout", "wait"})),
}
"""By the part of a model's name before the first slash; the name is what follows."""


def split_model(model: str) -> tuple[Provider | None, str]:
    """Our provider and the name within it; (None, model) for everything that is LiteLLM's."""
    prefix, slash, name = model.partition("/")
    provider = PROVIDERS.get(prefix) if slash else None
    return (provider, name) if provider else (None, model)
