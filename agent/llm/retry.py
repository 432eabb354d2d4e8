"""When a request is sent again: ours, since LiteLLM's own retries multiply."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


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
