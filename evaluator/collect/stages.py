"""How long each stage of collecting took."""

from __future__ import annotations

import os
import time
from pathlib import Path


class Stages:
    """A stopwatch that names what has just ended."""

    def __init__(self, since: float | None = None) -> None:
        """The first stage began at `since` (`time.monotonic`), or with the process."""
        self.seconds: dict[str, float] = {}
        self._since = time.monotonic() - _age_s() if since is None else since

    def end(self, name: str) -> None:
        """All since the last stage's end was this one."""
        now = time.monotonic()
        self.seconds[name] = now - self._since
        self._since = now


def _age_s() -> float:
    """Of this process, by the kernel's count of ticks since the machine started."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    started_s = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started_s)
