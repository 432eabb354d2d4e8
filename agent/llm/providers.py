"""Our own providers, by the part of a model's name before the first slash. All are free."""

from __future__ import annotations

from agent.llm.offline import OfflineProvider
from agent.llm.provider import Provider
from agent.llm.relay import RelayProvider
from agent.llm.replay import ReplayProvider

PROVIDERS: dict[str, Provider] = {
    "offline": OfflineProvider(),
    "replay": ReplayProvider(),
    "relay": RelayProvider(),
}


def split_model(model: str) -> tuple[Provider | None, str]:
    """Our provider and the name within it; (None, model) for everything that is LiteLLM's."""
    prefix, slash, name = model.partition("/")
    provider = PROVIDERS.get(prefix) if slash else None
    return (provider, name) if provider else (None, model)
