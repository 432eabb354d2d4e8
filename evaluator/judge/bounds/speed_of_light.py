"""How fast the device could do it: a floor for any kernel, and a bound worth aiming at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evaluator.evaluation import Rates
from evaluator.hardware.published import Published
from evaluator.judge.bounds.ceilings import Ceilings
from evaluator.judge.bounds.work import Work

SLACK = 1.05
"""Data sheets round: an H200's memory clock allows 4.92 TB/s where 4.8 are published."""
MARGIN = 1.02
"""What was measured is not quite the most that can be reached: where nothing is published."""


@dataclass(frozen=True)
class Bounds:
    """Times of one call, in microseconds. The first two are lower bounds, at published rates where
    there are such."""

    floor_us: float | None
    """Hard: a result below it is not believed. Bytes that must move over the published peak. None
    without one."""
    bound_us: float
    """Soft: the speed of light that `sol_fraction` refers to."""
    bytes_us: float
    """The part of the soft bound that no algebra can remove: the bytes, each moved once."""
    rates: Rates
    """Of the soft bound."""
    attainable_us: float
    """The same work at the rates that plain library calls reach on this very device."""


def bounds(work: Work, peaks: Published | None, ceilings: Ceilings, cache_bytes: int) -> Bounds:
    """The bounds for this work on a device; docs/timing.md derives them.

    floor = hard bytes / (peak bandwidth x 1.05); outputs count only beyond the last-level cache.
    bound = the largest of the time for the soft bytes, operations / rate (summed over the
    arithmetics), and the time of an empty call. Bandwidth and rates are the published ones; where
    none are published, 1.02 times those measured here. `attainable_us` is the same at the measured
    ones. Operations are never part of the floor: algebra may remove them.
    """
    moving_us = 1e6 * ceilings.moving_s(work.bytes_soft - work.bytes_out, work.bytes_out)
    attainable_us = max(moving_us, _operations_us(work, ceilings.flops), ceilings.empty_call_us)
    rates = {kind: MARGIN * rate for kind, rate in ceilings.flops.items()}
    floor_us, bytes_us = None, moving_us / MARGIN
    source: Rates = "measured"
    if peaks is not None:
        # What crosses the memory bus at least, where a cache keeps as much of the output as it can.
        hard = work.bytes_read_hard + max(0, work.bytes_written_hard - cache_bytes)
        floor_us = hard / (peaks.bandwidth_bytes_s * SLACK) * 1e6 if hard > 0 else None
        bytes_us = work.bytes_soft / peaks.bandwidth_bytes_s * 1e6
        rates, source = rates | peaks.flops, "published"
    bound_us = max(bytes_us, _operations_us(work, rates), ceilings.empty_call_us)
    return Bounds(floor_us, bound_us, bytes_us, source, attainable_us)


def _operations_us(work: Work, rates: Mapping[str, float]) -> float:
    return 1e6 * sum(count / rates[kind] for kind, count in work.flops.items() if kind in rates)
