"""One forward call on a CPU: operators by torch.profiler, wall time against processor time."""

from __future__ import annotations

import contextlib
import resource
import statistics
import threading
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch.autograd.profiler import profile

from evaluator.collect.collected import CollectedOperator, CpuTrace

OWN_PREFIX = "own::"
"""How the candidate's own functions are marked in a trace."""
_MEASURE_S = 0.5
_LEAST_CALLS = 3
_MOST_CALLS = 20
_PROFILED_CALLS = 5


def collect_cpu(
    call: Callable[[], object],
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
    # The first use of the profiler sets it up, which would count as the call's time.
    _profiled(call)
    profiled: list[tuple[float, profile]] = []
    deadline = time.perf_counter() + _MEASURE_S
    while not profiled or (time.perf_counter() < deadline and len(profiled) < _PROFILED_CALLS):
        flush.add_(1)
        profiled.append(_profiled(call))
    wall_us = statistics.median(walls)
    profiled_us, profiler = min(profiled, key=lambda one: abs(one[0] - wall_us))
    return CpuTrace(
        operators=_operators(profiler),
        wall_us=wall_us,
        cpu_us=statistics.median(cpus),
        busiest_thread_us=statistics.median(busiest),
        profiled_us=profiled_us,
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


def _profiled(call: Callable[[], object]) -> tuple[float, profile]:
    # What torch.profiler is made of: the latter would import the whole compiler first.
    with profile(use_kineto=True, profile_memory=True) as profiler:
        begin = time.perf_counter_ns()
        call()
        return (time.perf_counter_ns() - begin) / 1e3, profiler


def _operators(profiler: profile) -> tuple[CollectedOperator, ...]:
    operators = [
        CollectedOperator(
            name=event.key.removeprefix(OWN_PREFIX),
            own=event.key.startswith(OWN_PREFIX) or not event.key.startswith("aten::"),
            calls=event.count,
            time_us=max(0.0, float(event.self_cpu_time_total)),
            allocated_bytes=max(0, int(event.self_cpu_memory_usage)),
        )
        for event in profiler.key_averages()
        if not event.key.startswith("[")
    ]
    return tuple(sorted(operators, key=lambda operator: -operator.time_us))
