"""How fast the device could do it: a floor nobody can undercut, and a bound worth aiming at."""

from __future__ import annotations

from dataclasses import dataclass

from evaluator.devices import DevicePeaks
from evaluator.judge.ceilings import Ceilings, measure_ceilings
from evaluator.judge.work import Work, count_work

__all__ = ["Bounds", "Ceilings", "Work", "bounds", "count_work", "measure_ceilings"]

SLACK = 1.05
"""Data sheets round: an H200's memory clock allows 4.92 TB/s where 4.8 are published."""


@dataclass(frozen=True)
class Bounds:
    """Two lower bounds on the time of one call, in microseconds; None where nothing is known."""

    floor_us: float | None
    """Hard: a result below it is not believed. Bytes that must move over the published peak."""
    bound_us: float | None
    """Soft: the speed of light that `sol_fraction` refers to."""
    bytes_us: float | None = None
    """The part of the soft bound that no algebra can remove: the bytes, each moved once."""


def bounds(
    work: Work,
    peaks: DevicePeaks | None,
    ceilings: Ceilings | None = None,
    cache_bytes: int = 0,
) -> Bounds:
    """The bounds for this work on a device.

    floor = hard bytes / (peak bandwidth x 1.05); outputs count only beyond the last-level cache.
    bound = the largest of soft bytes / bandwidth, operations / rate (summed over the arithmetics),
    and the time of an empty call; measured ceilings where given, else published peaks.
    Operations are never part of the floor: algebra may remove them.
    """
    floor_us = None
    hard = work.bytes_hard(cache_bytes)
    if peaks is not None and hard > 0:
        floor_us = hard / (peaks.bandwidth_bytes_s * SLACK) * 1e6
    limits = []
    bytes_us = None
    bandwidth = ceilings or peaks
    if bandwidth is not None:
        bytes_us = work.bytes_soft / bandwidth.bandwidth_bytes_s * 1e6
        limits.append(bytes_us)
    compute_us = 0.0
    for kind, count in work.flops.items():
        rate = _rate(kind, peaks, ceilings)
        if rate is not None:
            compute_us += count / rate * 1e6
    if bandwidth is not None:
        limits.append(compute_us)
    if ceilings is not None:
        limits.append(ceilings.empty_call_us)
    return Bounds(floor_us, max(limits, default=None), bytes_us)


def _rate(kind: str, peaks: DevicePeaks | None, ceilings: Ceilings | None) -> float | None:
    rates = [table.flops[kind] for table in (ceilings, peaks) if table and kind in table.flops]
    return rates[0] if rates else None
