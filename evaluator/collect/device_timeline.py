"""What a device did in one forward call, and when it did nothing: from events of a trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypedDict

from evaluator.collect.collected import CollectedKernel, DeviceTimeline

KERNEL = "kernel"
_OTHERS = ("gpu_memcpy", "gpu_memset")
_RUNTIME = ("cuda_runtime", "cuda_driver")


class TraceEvent(TypedDict, total=False):
    """One event of a Chrome trace, times in microseconds."""

    ph: str
    cat: str
    name: str
    ts: float
    dur: float
    args: dict[str, object]


def device_activities(events: Sequence[TraceEvent]) -> list[TraceEvent]:
    """Kernels, memsets and copies."""
    return [event for event in events if event.get("cat") in (KERNEL, *_OTHERS)]


def device_timeline(events: Sequence[TraceEvent]) -> DeviceTimeline:
    """Of the events of one call, of which at least one is a device's."""
    activities = device_activities(events)
    kernels = [event for event in activities if event["cat"] == KERNEL]
    groups: dict[str, list[TraceEvent]] = {}
    for event in activities:
        if event["cat"] != KERNEL:
            groups.setdefault(event["name"], []).append(event)
    gaps = list(_gaps(activities))
    host_us: dict[str, float] = {}
    for event in events:
        # With that one the trace itself waits for the end.
        if event.get("cat") in _RUNTIME and event["name"] != "cudaDeviceSynchronize":
            shared_us = sum(_shared_us(event, *gap) for gap in gaps)
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
            for name, group in groups.items()
        ),
        span_us=end - min(event["ts"] for event in activities),
        gaps_us=sum(end - begin for begin, end in gaps),
        host_call=longest,
        host_call_us=host_us.get(longest, 0.0),
    )


def _gaps(activities: Sequence[TraceEvent]) -> Iterator[tuple[float, float]]:
    """Beginnings and ends: when nothing ran, between the first activity and the last one."""
    ordered = sorted(activities, key=lambda event: event["ts"])
    busy_until = _end(ordered[0])
    for event in ordered[1:]:
        if event["ts"] > busy_until:
            yield busy_until, event["ts"]
        busy_until = max(busy_until, _end(event))


def _end(event: TraceEvent) -> float:
    return event["ts"] + event["dur"]


def _shared_us(event: TraceEvent, begin: float, end: float) -> float:
    return max(0.0, min(_end(event), end) - max(event["ts"], begin))
