"""The kernels of one forward call, and when the device did nothing, by torch.profiler (CUPTI)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluator.collect.collected import (
    Collected,
    CollectedKernel,
    DeviceTimeline,
    KernelTrace,
)
from evaluator.collect.kernel_name import base_name
from evaluator.collect.nsight.ncu_metrics import QUANTITIES
from evaluator.errors import ProfilerError

TRACE = "trace.json"
"""Its own report, in Chrome's format."""
_MARK = "refinery_forward"
_KNOWN = ("grid", "block", "sm_count", "registers", "shared_bytes", "occupancy_pct")
_KERNEL = "kernel"
_OTHERS = ("gpu_memcpy", "gpu_memset")
_RUNTIME = ("cuda_runtime", "cuda_driver")


TraceEvent = dict[str, Any]
"""In Chrome's format, with times in microseconds; `cat` is left out of some."""


def collect_torch_trace(call: Callable[[], object], *, sm_count: int, folder: Path) -> Collected:
    """Trace one call on a GPU, after one that sets the profiler up; `TRACE` stays in `folder`.

    Raises `ProfilerError`.
    """
    import torch

    # What torch.profiler is made of: the latter would import the whole compiler first.
    from torch.autograd.profiler import profile, record_function

    with profile(use_kineto=True, use_device="cuda") as profiler:
        for _ in range(2):
            with record_function(_MARK):
                call()
                torch.cuda.synchronize()
    path = folder / TRACE
    profiler.export_chrome_trace(str(path))
    return parse_trace(json.loads(path.read_text()), sm_count=sm_count)


def parse_trace(trace: Mapping[str, Any], *, sm_count: int) -> Collected:
    """The kernels and the timeline of the last marked call in a Chrome trace.

    Raises `ProfilerError` if no kernel ran.
    """
    events = [event for event in trace.get("traceEvents", []) if event.get("ph") == "X"]
    marks = [
        event["ts"]
        for event in events
        if event.get("name") == _MARK and event.get("cat") == "user_annotation"
    ]
    begin = max(marks) if marks else 0.0
    call = [event for event in events if event["ts"] >= begin]
    groups = _by_name(call, (_KERNEL, *_OTHERS))
    if not groups:
        raise ProfilerError("torch.profiler saw no kernel (is CUPTI permitted here?)")
    collected = [_kernel(name, launches, sm_count) for name, launches in groups.items()]
    timeline = device_timeline(call)
    found = KernelTrace(
        kernels=tuple(sorted(collected, key=lambda kernel: -kernel.time_us)),
        span_us=timeline.span_us,
        missing=tuple(name for name in QUANTITIES if name not in (*_KNOWN, "time_us")),
    )
    return Collected(gpu=found, timeline=timeline)


def _kernel(name: str, launches: list[TraceEvent], sm_count: int) -> CollectedKernel:
    launches = sorted(launches, key=lambda event: event["ts"])
    longest = max(launches, key=lambda event: event["dur"])
    facts = longest.get("args", {})
    metrics: dict[str, float | None] = dict.fromkeys(QUANTITIES)
    del metrics["time_us"]
    metrics |= {
        "grid": _product(facts.get("grid")),
        "block": _product(facts.get("block")),
        "sm_count": float(sm_count),
        "registers": _number(facts.get("registers per thread")),
        "shared_bytes": _number(facts.get("shared memory")),
        "occupancy_pct": _number(facts.get("est. achieved occupancy %")),
    }
    return CollectedKernel(
        name=name,
        launches=len(launches),
        time_us=sum(event["dur"] for event in launches),
        durations_us=tuple(event["dur"] for event in launches),
        metrics=metrics,
    )


def _product(sizes: object) -> float | None:
    if not isinstance(sizes, list):
        return None
    product = 1.0
    for size in sizes:
        product *= float(size)
    return product


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _by_name(
    events: Sequence[TraceEvent], categories: Sequence[str]
) -> dict[str, list[TraceEvent]]:
    groups: dict[str, list[TraceEvent]] = {}
    for event in events:
        if event.get("cat") in categories:
            name = base_name(event["name"]) if event["cat"] == _KERNEL else event["name"]
            groups.setdefault(name, []).append(event)
    return groups


def device_timeline(events: Sequence[TraceEvent]) -> DeviceTimeline:
    activities = [event for event in events if event.get("cat") in (_KERNEL, *_OTHERS)]
    kernels = [event for event in activities if event["cat"] == _KERNEL]
    gaps = list(_gaps(activities))
    host_us: dict[str, float] = {}
    for event in events:
        # With that one the trace itself waits for the end.
        if event.get("cat") in _RUNTIME and event["name"] != "cudaDeviceSynchronize":
            begin, end = event["ts"], _end(event)
            shared_us = sum(max(0.0, min(end, gap[1]) - max(begin, gap[0])) for gap in gaps)
            host_us[event["name"]] = host_us.get(event["name"], 0.0) + shared_us
    longest = max(host_us, key=lambda name: host_us[name], default="")
    end = max(_end(event) for event in activities)
    return DeviceTimeline(
        kernels=len(kernels),
        kernels_us=sum(event["dur"] for event in kernels),
        others=tuple(
            CollectedKernel(
                name=name, launches=len(group), time_us=sum(event["dur"] for event in group)
            )
            for name, group in _by_name(events, _OTHERS).items()
        ),
        span_us=end - min(event["ts"] for event in activities),
        gaps_us=sum(end - begin for begin, end in gaps),
        host_call=longest,
        host_call_us=host_us.get(longest, 0.0),
    )


def _gaps(activities: Sequence[TraceEvent]) -> Iterator[tuple[float, float]]:
    ordered = sorted(activities, key=lambda event: event["ts"])
    busy_until = _end(ordered[0])
    for event in ordered[1:]:
        if event["ts"] > busy_until:
            yield busy_until, event["ts"]
        busy_until = max(busy_until, _end(event))


def _end(event: TraceEvent) -> float:
    return float(event["ts"] + event["dur"])
