"""A failed request: what it means, in one line, and whether and when it is sent again.

The retries are not LiteLLM's, since those multiply.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from agent.record.completion import Usage
from evaluator.errors import InfrastructureError
from problems.errors import UsageError

_MOST_CHARACTERS = 300
_PASSING = (408, 409, 425, 429)
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS)(_ID)?$")
_SECRET_SHAPE = re.compile(
    r"\b(?:sk|pk|gsk|xai|hf)[-_][A-Za-z0-9_-]{8,}|\bAIza[A-Za-z0-9_-]{20,}|\bBearer\s+\S+"
)
_PREFIX = re.compile(r"^(?:litellm\.)?\w*(?:Error|Exception|Timeout): |^\w*Exception(?: \w+)? - ")
_QUOTED = re.compile(r"^\{.*?\"message\": ?\"((?:[^\"\\]|\\.)+)\"")


class ModelError(InfrastructureError):
    """No answer came from the model. Its text is one line, without any key."""

    usage: Usage | None = None
    """What unusable answers were billed before it came to this; None where nothing was."""


class ModelUnavailableError(ModelError):
    """The provider kept failing, or asked to wait longer than we do. Trying later may help."""


class ModelRefusedError(ModelError, UsageError):
    """The provider refused the request for good, and will refuse the next one too.

    A wrong key, a model that isn't there, a parameter that it doesn't take: the user can fix it,
    so command lines show it as they show any `UsageError`.
    """


class PromptRefusedError(ModelError):
    """The provider rejects this prompt (too long, or against its content policy), not others."""


class ModelInterruptedError(ModelError):
    """The run is stopping, so the wait for an answer was given up."""


class AnswerAwaitedError(ModelError):
    """The prompt lies where it is answered. A later command finds the answer."""

    def __init__(self, answer: str) -> None:
        """`answer`: the file that will hold it."""
        super().__init__(f"there is no {answer} yet")
        self.answer = answer


@dataclass(frozen=True)
class RetryPolicy:
    """Exponential back-off with jitter, bounded by attempts and by time."""

    attempts: int = 6
    """Most requests for one completion."""
    first_delay_s: float = 1.0
    longest_delay_s: float = 60.0
    """Most that we wait of our own accord; a provider's Retry-After may be longer."""
    total_s: float = 1800.0
    """No new request is sent when it would begin later than this after the first one."""

    def delay_s(self, attempt: int, retry_after_s: float | None, key: str) -> float:
        """Seconds to wait after the failed request number `attempt` (from 1).

        `retry_after_s` is the provider's wish and a lower bound. The jitter (to one half below
        our own delay, to a tenth above the provider's) follows from `key` and `attempt`, so that
        parallel workers spread out and a run can be repeated.
        """
        jitter = random.Random(f"{key}:{attempt}").random()
        if retry_after_s is not None:
            return retry_after_s * (1.0 + 0.1 * jitter)
        delay_s = min(self.longest_delay_s, self.first_delay_s * 2.0 ** (attempt - 1))
        return delay_s * (0.5 + 0.5 * jitter)


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that a provider asks to wait: `Retry-After` (RFC 9110: seconds or a date), or the
    more exact `retry-after-ms`. None where it says nothing that can be understood."""
    lower = {name.lower(): value.strip() for name, value in headers.items()}
    milliseconds, wish = lower.get("retry-after-ms", ""), lower.get("retry-after", "")
    if _is_number(milliseconds):
        return float(milliseconds) / 1000.0
    if _is_number(wish):
        return float(wish)
    try:
        moment = parsedate_to_datetime(wish)
    except (ValueError, TypeError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text, re.ASCII) is not None


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
            f" (kernel-refinery doctor names it): {said}"
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
