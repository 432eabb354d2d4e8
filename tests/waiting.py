"""Waiting for what another process or thread is about to do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


def once(
    found: Callable[[], Found], patience_s: float = 60.0, *, why: Callable[[], str] = str
) -> Found:
    """What `found` returns, as soon as that is anything; fails with `why` after so many seconds."""
    end = time.monotonic() + patience_s
    while not (value := found()):
        assert time.monotonic() < end, why()
        time.sleep(0.005)
    return value
