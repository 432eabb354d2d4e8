"""Counts of single calls in another process, which says where each begins and ends.

A word between the two costs instructions of its own, so windows with nothing in them are counted as
well, and taken off.
"""

from __future__ import annotations

import statistics
from enum import IntEnum

from evaluator.collect.counters.perf_counters import NoCountersError, PerfCounters
from evaluator.ipc.wire import WireError

_MOST_WINDOWS = 1000


class Mark(IntEnum):
    """What the counted process says."""

    BEGIN = 1
    CALL_ENDED = 2
    NOTHING_ENDED = 3


class CallCounter:
    def __init__(self, pid: int | None) -> None:
        """Open them on `pid`, if any; where that can't be, `reason` says why."""
        self.reason = ""
        self._counters: PerfCounters | None = None
        self._windows: dict[Mark, list[dict[str, float]]] = {mark: [] for mark in Mark}
        self._before: dict[str, float] = {}
        if pid is None:
            return
        try:
            self._counters = PerfCounters(pid)
        except NoCountersError as error:
            self.reason = str(error)

    def answer(self, said: bytes) -> bytes:
        """Do as the process says; empty where nothing is counted. Raises `WireError`."""
        if self._counters is None:
            return b""
        if len(said) != 1 or said[0] not in tuple(Mark):
            raise WireError("no mark of a call")
        mark = Mark(said[0])
        if mark is Mark.BEGIN:
            self._before = self._counters.read()
            self._counters.start()
            return b"+"
        self._counters.stop()
        if len(self._windows[mark]) >= _MOST_WINDOWS:
            raise WireError("too many calls to count")
        after = self._counters.read()
        self._windows[mark].append(
            {name: value - self._before.get(name, 0.0) for name, value in after.items()}
        )
        return b"+"

    def counts(self) -> dict[str, float]:
        """Of one call, by event: the median over the calls, less that of the empty windows."""
        call, nothing = (_medians(self._windows[mark]) for mark in tuple(Mark)[1:])
        return {name: max(0.0, value - nothing.get(name, 0.0)) for name, value in call.items()}

    def close(self) -> None:
        if self._counters is not None:
            self._counters.close()


def _medians(windows: list[dict[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for window in windows for name in window)
    return {
        name: statistics.median(window[name] for window in windows if name in window)
        for name in names
    }
