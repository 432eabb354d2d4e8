"""Where a process's time goes: clocks around chosen functions, and its memory as the kernel has it.

For a process that does nothing else: functions stay clocked until it ends.
"""

from __future__ import annotations

import functools
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

PAGE_MIB = 4096 / 2**20


class Meter:
    """Adds up wall and processor seconds under labels. Of clocked functions that call each other,
    the outermost counts, thread by thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = threading.local()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.cpu_seconds: defaultdict[str, float] = defaultdict(float)
        self.calls: Counter[str] = Counter()

    def clock(self, label: str, owner: Any, *names: str) -> None:
        """From now on, add what these functions of `owner` (a class or a module) take."""
        for name in names:
            setattr(owner, name, self._clocked(label, getattr(owner, name)))

    def _clocked(self, label: str, function: Any) -> Any:
        @functools.wraps(function)
        def clocked(*arguments: Any, **named: Any) -> Any:
            if getattr(self._inside, "clocked", False):
                return function(*arguments, **named)
            self._inside.clocked = True
            began, worked = time.perf_counter(), time.thread_time()
            try:
                return function(*arguments, **named)
            finally:
                took, work = time.perf_counter() - began, time.thread_time() - worked
                self._inside.clocked = False
                with self._lock:
                    self.seconds[label] += took
                    self.cpu_seconds[label] += work
                    self.calls[label] += 1

        return clocked


def memory_mib() -> float:
    """What this process has in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_MIB


def peak_memory_mib() -> float:
    """The most that it had at any time since it was started."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise OSError("/proc/self/status names no VmHWM")
