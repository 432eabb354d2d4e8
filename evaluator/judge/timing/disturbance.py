"""What disturbed a block of timed calls from outside, so that it can be left out.

Only what neither runner did is counted: time that the hypervisor took, a processor quota of the
container that ran out, a GPU that slowed itself down or changed its clock, somebody else's process
on it. A candidate can bring about some of it (heat, a quota), so blocks that are left out are
counted, and where they are many a candidate is called slower or nothing (`timing_result.py`).
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from types import ModuleType
from typing import Any, Protocol

from evaluator.hardware.conditions import SLOWDOWNS, quota_seconds, steal_seconds
from evaluator.hardware.nvml import device_index, nvml_handles, nvml_library

MOST_DISTURBED_SHARE = 0.2
"""Of the blocks that a verdict rests on: with more, none but `slower` is given."""
_STEAL_SHARE = 0.01
"""Of the processors' time in a block. The kernel counts in steps of 10 ms."""
_CLOCK_SHARE = 0.02


class Disturbance(StrEnum):
    STEAL = "steal"
    CPU_QUOTA = "cpu_quota"
    GPU_SLOWDOWN = "gpu_slowdown"
    CLOCK_CHANGE = "clock_change"
    OTHER_PROCESS = "other_process"


_OF_THE_HOST = frozenset({Disturbance.STEAL, Disturbance.CPU_QUOTA})
"""What a device does not feel whose work was all enqueued before it began."""


@dataclass(frozen=True)
class Reading:
    """Counters and states at one instant; None where there is no GPU or it doesn't tell."""

    at_s: float
    steal_s: float
    quota_s: float
    slowed: bool = False
    sm_clock_mhz: int | None = None
    processes: int | None = None


class Gauge(Protocol):
    def read(self, *, counts_processes: bool = True) -> Reading:
        """The state now. Counting the processes on a GPU takes several milliseconds."""
        ...


def disturbances(before: Reading, after: Reading, usual: Reading) -> set[Disturbance]:
    """What happened between two readings; `usual` was taken before the first block."""
    found = set()
    capacity_s = (after.at_s - before.at_s) * len(os.sched_getaffinity(0))
    if after.steal_s - before.steal_s > _STEAL_SHARE * capacity_s:
        found.add(Disturbance.STEAL)
    if after.quota_s > before.quota_s:
        found.add(Disturbance.CPU_QUOTA)
    if before.slowed or after.slowed:
        found.add(Disturbance.GPU_SLOWDOWN)
    clocks = (before.sm_clock_mhz, after.sm_clock_mhz)
    if clocks[0] and clocks[1] and abs(clocks[1] - clocks[0]) > _CLOCK_SHARE * clocks[0]:
        found.add(Disturbance.CLOCK_CHANGE)
    if None not in (before.processes, after.processes, usual.processes) and (
        max(before.processes or 0, after.processes or 0) > (usual.processes or 0)
    ):
        found.add(Disturbance.OTHER_PROCESS)
    return found


class Watch:
    """Tells after each block what disturbed it, and sums up the clocks that it saw."""

    def __init__(self, gauge: Gauge) -> None:
        self._gauge = gauge
        self._usual = self._before = gauge.read()
        self._clocks: list[int] = []

    def expect_another_process(self) -> None:
        if self._usual.processes is not None:
            self._usual = replace(self._usual, processes=self._usual.processes + 1)

    def begin(self) -> None:
        """A block begins. Those who were on the GPU when the last one ended are taken to be there
        still."""
        now = self._gauge.read(counts_processes=False)
        self._before = replace(now, processes=self._before.processes)

    def end(self, *, enqueued: bool = False) -> set[Disturbance]:
        """The block is over: what disturbed it. `enqueued`: on a GPU, all before it began."""
        after = self._gauge.read()
        self._clocks += [r.sm_clock_mhz for r in (self._before, after) if r.sm_clock_mhz]
        found = disturbances(self._before, after, self._usual)
        self._before = after
        return found - _OF_THE_HOST if enqueued else found

    def seen(self) -> dict[str, float | int]:
        now = self._gauge.read(counts_processes=False)
        seen: dict[str, float | int] = {
            "timed_steal_s": round(now.steal_s - self._usual.steal_s, 3),
            "timed_quota_s": round(now.quota_s - self._usual.quota_s, 3),
        }
        if self._clocks:
            seen |= {
                "timed_sm_clock_low_mhz": min(self._clocks),
                "timed_sm_clock_high_mhz": max(self._clocks),
            }
        return seen


class _Host:
    def read(self, *, counts_processes: bool = True) -> Reading:
        del counts_processes
        return Reading(time.monotonic(), steal_seconds(), quota_seconds())


class _Gpu:
    """NVML's view of one device. A question that it doesn't answer once is not asked again."""

    def __init__(self, nvml: ModuleType, handle: object) -> None:
        self._nvml = nvml
        self._handle = handle
        self._mute: set[str] = set()

    def _ask(self, question: str, *arguments: object) -> Any:
        if question in self._mute:
            return None
        try:
            return getattr(self._nvml, question)(self._handle, *arguments)
        except self._nvml.NVMLError:
            self._mute.add(question)
            return None

    def read(self, *, counts_processes: bool = True) -> Reading:
        reasons = self._ask("nvmlDeviceGetCurrentClocksThrottleReasons") or 0
        question = "nvmlDeviceGetComputeRunningProcesses"
        running = self._ask(question) if counts_processes else None
        return Reading(
            time.monotonic(),
            steal_seconds(),
            quota_seconds(),
            slowed=bool(reasons & SLOWDOWNS),
            sm_clock_mhz=self._ask("nvmlDeviceGetClockInfo", self._nvml.NVML_CLOCK_SM),
            processes=None if running is None else len(running),
        )


@contextlib.contextmanager
def watch(device: str) -> Iterator[Watch]:
    if device == "cpu":
        yield Watch(_Host())
        return
    with nvml_library() as nvml:
        handles = nvml_handles(nvml) if nvml is not None else []
        if nvml is not None and device_index(device) < len(handles):
            yield Watch(_Gpu(nvml, handles[device_index(device)]))
        else:
            yield Watch(_Host())
