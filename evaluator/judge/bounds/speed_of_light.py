"""How fast the device could do it: a floor nobody can undercut, and a bound worth aiming at."""

from __future__ import annotations

from dataclasses import dataclass

from evaluator.hardware.published import DevicePeaks
from evaluator.judge.bounds.ceilings import Ceilings
from evaluator.judge.bounds.work import Work

SLACK = 1.05
"""Data sheets round: an H200's memory clock allows 4.92 TB/s where 4.8 are published."""
MARGIN = 1.02
"""What was measured is not quite the most that can be reached."""


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
    """The bounds for this work on a device; docs/speed_of_light.md derives them.

    floor = hard bytes / (peak bandwidth x 1.05); outputs count only beyond the last-level cache.
    bound = the largest of the time for the soft bytes, operations / rate (summed over the
    arithmetics), and the time of an empty call. Bytes move at the published bandwidth, and where
    none is published at 1.02 times the measured ones; rates are 1.02 times the measured ones and
    never above the published ones. Operations are never part of the floor: algebra may remove them.
    """
    floor_us = None
    hard = work.bytes_hard(cache_bytes)
    if peaks is not None and hard > 0:
        floor_us = hard / (peaks.bandwidth_bytes_s * SLACK) * 1e6
    bytes_us = _bytes_us(work, peaks, ceilings)
    if bytes_us is None:
        return Bounds(floor_us, None)
    rates = {kind: _rate(kind, peaks, ceilings) for kind in work.flops}
    limits = [bytes_us, 1e6 * sum(work.flops[kind] / rate for kind, rate in rates.items() if rate)]
    if ceilings is not None:
        limits.append(ceilings.empty_call_us)
    return Bounds(floor_us, max(limits), bytes_us)


def _bytes_us(work: Work, peaks: DevicePeaks | None, ceilings: Ceilings | None) -> float | None:
    if peaks is not None:
        return work.bytes_soft / peaks.bandwidth_bytes_s * 1e6
    if ceilings is not None:
        read = work.bytes_soft - work.bytes_out
        return ceilings.moving_s(read, work.bytes_out) / MARGIN * 1e6
    return None


def _rate(kind: str, peaks: DevicePeaks | None, ceilings: Ceilings | None) -> float | None:
    """Operations a second in this arithmetic; None where it is neither measured nor published."""
    rates = [peaks.flops[kind]] if peaks and kind in peaks.flops else []
    if ceilings and kind in ceilings.flops:
        rates.append(MARGIN * ceilings.flops[kind])
    return min(rates, default=None)
