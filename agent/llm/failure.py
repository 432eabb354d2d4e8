"""A failed request: what it means, in one line, and whether sending it again can help."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from agent.llm.errors import ModelRefusedError, PromptRefusedError
from agent.llm.retry import retry_after_s

_MOST_CHARACTERS = 300
_PASSING = (408, 409, 425, 429)
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS)(_ID)?$")
_SECRET_SHAPE = re.compile(
    r"\b(?:sk|pk|gsk|xai|hf)[-_][A-Za-z0-9_-]{8,}|\bAIza[A-Za-z0-9_-]{20,}|\bBearer\s+\S+"
)
_PREFIX = re.compile(r"^(?:litellm\.)?\w*(?:Error|Exception|Timeout): |^\w*Exception(?: \w+)? - ")
_QUOTED = re.compile(r"^\{.*?\"message\": ?\"((?:[^\"\\]|\\.)+)\"")


@dataclass(frozen=True)
class Transient:
    """Sending the request again may help."""

    reason: str
    retry_after_s: float | None = None


def judge_failure(error: Exception, model: str) -> Transient | Exception:
    """What LiteLLM's exception `error` means: `Transient`, or the exception to raise.

    Time-outs, rate limits, server errors and broken connections are `Transient`. The rest is a
    `ModelError` that says how to fix it.
    """
    status = getattr(error, "status_code", None)
    kind = type(error).__name__
    said = one_line(str(error))
    codes = f"{getattr(error, 'code', '')} {getattr(error, 'body', '')} {error}"
    if kind == "ContextWindowExceededError" or "context_length_exceeded" in codes:
        return PromptRefusedError(f"{model}: the prompt is longer than the model reads: {said}")
    if kind == "ContentPolicyViolationError":
        return PromptRefusedError(f"{model}: the provider's content policy refused: {said}")
    if "insufficient_quota" in codes:
        return ModelRefusedError(f"{model}: the account has no credit left: {said}")
    # An answer that is no JSON has the status of a good one, or is called unprocessable.
    unreadable = "converting to valid response" in said
    fixed = isinstance(status, int) and 400 <= status < 500 and status not in _PASSING
    if not fixed or unreadable:
        return Transient(said, retry_after_s(_headers(error), datetime.now(UTC)))
    if status in (401, 403):
        return ModelRefusedError(
            f"{model}: the key was refused ({status}); check the provider's environment variable"
            f" (python -m agent.doctor names it): {said}"
        )
    if status == 404:
        return ModelRefusedError(
            f"{model}: not found (404); check the model's name and api_base: {said}"
        )
    return ModelRefusedError(f"{model}: the request was refused ({status}): {said}")


def one_line(text: str) -> str:
    """An error's text in one short line, without LiteLLM's prefixes and without any key."""
    text = without_secrets(" ".join(text.partition("Traceback (most recent")[0].split()))
    while (shorter := _PREFIX.sub("", text, count=1)) != text:
        text = shorter
    quoted = _QUOTED.match(text)  # the protocol's own error object
    text = quoted.group(1) if quoted else text
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 3] + "..."


def without_secrets(text: str) -> str:
    """`text` with the values of all key-like environment variables, and what looks like a key,
    replaced: a provider may quote the key that it refuses."""
    for name, value in os.environ.items():
        if len(value) >= 6 and _SECRET_NAME.search(name):
            text = text.replace(value, f"<{name}>")
    return _SECRET_SHAPE.sub("<key>", text)


def _headers(error: Any) -> Mapping[str, str]:
    headers = getattr(error, "litellm_response_headers", None)
    if headers is None:
        headers = getattr(getattr(error, "response", None), "headers", None)
    return dict(headers) if headers is not None else {}
