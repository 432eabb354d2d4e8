"""LiteLLM, loaded late and kept quiet, with our own providers registered in it."""

from __future__ import annotations

import logging
import os
import threading
import warnings
from collections.abc import Sequence
from typing import Any

from agent.llm.offline import OfflineProvider
from agent.llm.provider import PLACE, Place, Provider
from agent.llm.relay import RelayProvider
from agent.llm.replay import ReplayProvider
from agent.record.completion import Message

PROVIDERS: dict[str, Provider] = {
    "offline": OfflineProvider(),
    "replay": ReplayProvider(),
    "relay": RelayProvider(),
}
"""Ours, by the part of the model's name before the first slash. All are free of charge."""

_lock = threading.Lock()
_loaded: Any = None


def litellm() -> Any:
    """The `litellm` module: offline price map, silent, ours registered. About 2 s the first time.

    Set before the import: the price map that came with the installed version (else the import
    downloads one, and prices differ from day to day) and no reading of `.env` files that happen
    to lie above the installation (`LITELLM_MODE=DEV` in the environment brings that back).
    """
    global _loaded
    with _lock:
        # LiteLLM goes on importing when first used, and pydantic warns of its types then.
        warnings.filterwarnings("ignore", r"Items? '.*ReadOnly", UserWarning)
        if _loaded is None:
            os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
            os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
            import litellm as library

            library.suppress_debug_info = True  # it prints advice and links on stdout
            library.set_verbose = False
            for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
                # Below this it writes to stdout, and in debug mode whole prompts.
                logging.getLogger(name).setLevel(logging.ERROR)
            _register(library)
            _loaded = library
        return _loaded


def split_model(model: str) -> tuple[Provider | None, str]:
    """Our provider and the name within it; (None, model) for everything that is LiteLLM's."""
    prefix, slash, name = model.partition("/")
    provider = PROVIDERS.get(prefix) if slash else None
    return (provider, name) if provider else (None, model)


def _register(library: Any) -> None:
    from litellm.types.utils import (
        CompletionTokensDetailsWrapper,
        PromptTokensDetailsWrapper,
        Usage,
    )

    class Handler(library.CustomLLM):  # type: ignore[misc]
        """A provider of ours in the shape that LiteLLM calls."""

        def __init__(self, provider: Provider) -> None:
            super().__init__()
            self.provider = provider

        def completion(
            self,
            model: str,
            messages: Sequence[dict[str, str]],
            model_response: Any,
            optional_params: dict[str, Any],
            **_: object,
        ) -> Any:
            """Fill in `model_response`. What it raises comes out wrapped by LiteLLM."""
            answer = self.provider.answer(
                model,
                [Message.model_validate(message) for message in messages],
                optional_params.get("temperature"),
                optional_params.get("seed"),
                PLACE.get(Place()),
            )
            choice = model_response.choices[0]
            choice.message.content = answer.text
            choice.message.reasoning_content = answer.reasoning
            choice.finish_reason = answer.finish_reason
            model_response.model = answer.model
            usage = answer.usage
            model_response.usage = Usage(
                prompt_tokens=usage.prompt_tokens,
                completion_tokens=usage.completion_tokens,
                total_tokens=usage.prompt_tokens + usage.completion_tokens,
                prompt_tokens_details=PromptTokensDetailsWrapper(cached_tokens=usage.cached_tokens),
                completion_tokens_details=CompletionTokensDetailsWrapper(
                    reasoning_tokens=usage.reasoning_tokens
                ),
            )
            return model_response

    for name, provider in PROVIDERS.items():
        library.custom_provider_map.append({"provider": name, "custom_handler": Handler(provider)})
    library.utils.custom_llm_setup()
