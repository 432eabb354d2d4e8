"""Our own sources of completions, none of which is a language model behind HTTP. All are free."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from agent.llm.offline import tuner_client
from agent.llm.relay import relay_client
from agent.llm.replay import replay_client
from agent.record.completion import ModelClient


@dataclass(frozen=True)
class Provider:
    """One of them."""

    client: Callable[[str, threading.Event], ModelClient]
    """What answers for a name, safe to share between threads. The event, once set, ends every wait.
    Raises `UsageError` where that name can't answer."""
    arguments: frozenset[str] = frozenset()
    """The `--model-args` that it takes."""


PROVIDERS = {
    "offline": Provider(tuner_client),
    "replay": Provider(replay_client),
    "relay": Provider(relay_client, frozenset({"timeout"})),
}
"""By the part of a model's name before the first slash; the name is what follows."""


def split_model(model: str) -> tuple[Provider | None, str]:
    """Our provider and the name within it; (None, model) for everything that is LiteLLM's."""
    prefix, slash, name = model.partition("/")
    provider = PROVIDERS.get(prefix) if slash else None
    return (provider, name) if provider else (None, model)
