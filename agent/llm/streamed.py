"""An answer that is taken while the model writes it, as one response of LiteLLM's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.record.completion import Tell, apart


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
