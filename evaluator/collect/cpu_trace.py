"""One forward call on a CPU: operators by torch.profiler, wall time against processor time."""

from __future__ import annotations

import contextlib
import re
import resource
import statistics
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path

import torch
from torch.autograd.profiler import profile

from evaluator.collect.collected import CollectedOperator, CpuTrace, ProfiledCall

OWN_PREFIX = "own::"
"""How the candidate's own functions are marked in a trace."""
_MEASURE_S = 0.5
_LEAST_CALLS = 3
_MOST_CALLS = 20
_PROFILED_CALLS = 5
_CALLS = 7


def own_namespaces(source: str) -> frozenset[str]:
    """Those of the candidate's operators."""
    found = set(re.findall(r"\bTORCH_LIBRARY(?:_FRAGMENT|_IMPL)?\s*\(\s*(\w+)", source))
    if "TORCH_EXTENSION_NAME" in found:
        found.update(re.findall(r"\b(?:name\s*=|load(?:_inline)?\()\s*[\"'](\w+)", source))
    return frozenset(found - {"aten"})


def collect_calls(
    call: Callable[[], object], namespaces: Collection[str]
) -> tuple[ProfiledCall, ...]:
    """Trace several calls, each by itself. `namespaces` are those of the candidate's operators."""
    # The first use of the profiler sets it up, which would count as the call's time.
    _profiled(call, namespaces, memory=False)
    return tuple(_profiled(call, namespaces, memory=False) for _ in range(_CALLS))


def collect_cpu(
    call: Callable[[], object],
    namespaces: Collection[str],
    *,
    threads: int,
    output_bytes: int,
    flush_bytes: int,
) -> CpuTrace:
    """Call repeatedly, with caches flushed before each call as the judge does."""
    flush = torch.zeros(flush_bytes, dtype=torch.uint8)
    walls: list[float] = []
    cpus: list[float] = []
    busiest: list[float] = []
    faults, system_s, all_s = 0, 0.0, 0.0
    deadline = time.perf_counter() + _MEASURE_S
    while len(walls) < _LEAST_CALLS or (
        time.perf_counter() < deadline and len(walls) < _MOST_CALLS
    ):
        flush.add_(1)
        threads_before = _other_threads()
        before = resource.getrusage(resource.RUSAGE_SELF)
        main, wall = time.thread_time_ns(), time.perf_counter_ns()
        call()
        walls.append((time.perf_counter_ns() - wall) / 1e3)
        main = time.thread_time_ns() - main
        after = resource.getrusage(resource.RUSAGE_SELF)
        faults += after.ru_minflt - before.ru_minflt
        system_s += after.ru_stime - before.ru_stime
        all_s += after.ru_stime + after.ru_utime - before.ru_stime - before.ru_utime
        spent = [main, *(t - threads_before.get(n, 0) for n, t in _other_threads().items())]
        cpus.append(sum(spent) / 1e3)
        busiest.append(max(spent) / 1e3)
    _profiled(call, namespaces, memory=True)
    profiled: list[ProfiledCall] = []
    deadline = time.perf_counter() + _MEASURE_S
    while not profiled or (time.perf_counter() < deadline and len(profiled) < _PROFILED_CALLS):
        flush.add_(1)
        profiled.append(_profiled(call, namespaces, memory=True))
    wall_us = statistics.median(walls)
    nearest = min(profiled, key=lambda one: abs(one.wall_us - wall_us))
    return CpuTrace(
        operators=nearest.operators,
        wall_us=wall_us,
        cpu_us=statistics.median(cpus),
        busiest_thread_us=statistics.median(busiest),
        profiled_us=nearest.wall_us,
        threads=threads,
        page_faults=faults / len(walls),
        system_share=system_s / all_s if all_s > 0 else 0.0,
        output_bytes=output_bytes,
    )


def _other_threads() -> dict[str, int]:
    """Processor time of each living thread but this one, in nanoseconds."""
    times = {}
    for task in Path("/proc/self/task").iterdir():
        if task.name != str(threading.get_native_id()):
            # A thread may end meanwhile.
            with contextlib.suppress(OSError, ValueError, IndexError):
                times[task.name] = int((task / "schedstat").read_text().split()[0])
    return times


def _profiled(
    call: Callable[[], object], namespaces: Collection[str], *, memory: bool
) -> ProfiledCall:
    # What torch.profiler is made of: the latter would import the whole compiler first.
    with profile(use_kineto=True, profile_memory=memory) as profiler:
        begin = time.perf_counter_ns()
        call()
        wall_us = (time.perf_counter_ns() - begin) / 1e3
    operators = [
        CollectedOperator(
            name=event.key.removeprefix(OWN_PREFIX),
            own=event.key.startswith(OWN_PREFIX) or event.key.rpartition("::")[0] in namespaces,
            calls=event.count,
            time_us=max(0.0, float(event.self_cpu_time_total)),
            allocated_bytes=max(0, int(event.self_cpu_memory_usage)),
        )
        for event in profiler.key_averages()
        if not event.key.startswith("[")
    ]
    operators.sort(key=lambda operator: -operator.time_us)
    return ProfiledCall(wall_us=wall_us, operators=tuple(operators))
