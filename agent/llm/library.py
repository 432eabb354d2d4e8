"""LiteLLM, loaded late and kept quiet, and its streams as whole responses."""

from __future__ import annotations

import gc
import logging
import os
import threading
import warnings
from collections.abc import Mapping
from typing import Any

from agent.record.completion import Tell, apart

_lock = threading.Lock()
_loaded: Any = None


def litellm() -> Any:
    """The `litellm` module: offline price map, silent. About 2 s the first time.

    Set before the import: the price map that came with the installed version (else the import
    downloads one, and prices differ from day to day) and no reading of `.env` files that happen
    to lie above the installation (`LITELLM_MODE=DEV` in the environment brings that back).
    """
    global _loaded
    with _lock:
        # LiteLLM goes on importing when first used, and pydantic warns of its types then, and of
        # how it looks at the pieces of a stream.
        warnings.filterwarnings("ignore", r"Items? '.*ReadOnly", UserWarning)
        warnings.filterwarnings("ignore", r"Accessing the 'model_\w+' attr", DeprecationWarning)
        if _loaded is None:
            os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
            os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
            gc.disable()  # what is imported stays
            import litellm as library

            gc.freeze()
            gc.enable()
            library.suppress_debug_info = True  # it prints advice and links on stdout
            library.set_verbose = False
            for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
                # Below this it writes to stdout, and in debug mode whole prompts.
                logging.getLogger(name).setLevel(logging.ERROR)
            _loaded = library
        return _loaded


class NotStreamedError(Exception):
    """The server sent its answer whole, in a form that a stream cannot be read from."""


class BrokenOffError(Exception):
    """The stream ended before the answer did."""


def streamed(library: Any, asked: Mapping[str, Any], so_far: Tell) -> Any:
    """What `library.completion` would answer to `asked`; `so_far` hears the text as it grows.

    Raises what LiteLLM raises, `NotStreamedError` or `BrokenOffError`.
    """
    stream = library.completion(**asked, stream=True, stream_options={"include_usage": True})
    chunks, text = [], ""
    for chunk in stream:
        chunks.append(chunk)
        if piece := chunk.choices[0].delta.content if chunk.choices else None:
            text += piece
            so_far(apart(text.lstrip("\n"))[0])
    headers = stream._hidden_params.get("additional_headers") or {}
    kind = str(headers.get("llm_provider-content-type", ""))
    if not text and kind.startswith("application/json"):
        raise NotStreamedError
    # Not asked of the chunks: to a stream without an end LiteLLM adds a "stop" of its own.
    finished = bool(stream.received_finish_reason or stream.intermittent_finish_reason)
    counted = any(getattr(chunk, "usage", None) for chunk in stream.chunks)
    if not finished and not counted:
        raise BrokenOffError("the stream ended before the answer did")
    response = library.stream_chunk_builder(
        chunks, messages=asked["messages"], logging_obj=stream.logging_obj
    )
    # The chunks bear the name that was asked for.
    response.model = response._hidden_params.get("provider_response_model") or response.model
    if not counted:
        response.usage = None  # LiteLLM has a rule of thumb of its own
    if not finished and not text:
        response.choices = []  # nor did the stream hold one
    return response
