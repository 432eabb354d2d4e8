"""How the figures that advice watches are written, and how much each varies by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Unit:
    """A figure in words, the format of its value, and below what change it has not moved."""

    words: str
    text: str = "{:.1f}"
    noise_share: float = 0.05
    """Of the figure before; counters repeat to about 1 %, shares of peaks to a few per cent."""
    noise: float = 0.0
    """In the figure's own unit, for figures near 0. The larger of the two margins holds."""

    def format(self, value: float) -> str:
        return self.text.format(value)

    def margin(self, before: float) -> float:
        return max(self.noise_share * abs(before), self.noise)


_PCT = "{:.0f} %"


def _peak(words: str) -> Unit:
    return Unit(f"{words}, of peak", _PCT, noise=2.0)


def _share(words: str) -> Unit:
    return Unit(words, "{:.2f}", noise=0.02)


def _count(words: str) -> Unit:
    return Unit(words, "{:.0f}", noise=0.5)


def _stall(words: str) -> Unit:
    return Unit(f"warps stalled on {words} per instruction", "{:.1f}", 0.1, 0.2)


UNITS: Mapping[str, Unit] = {
    "blocks_per_sm": Unit("blocks an SM", "{:.2f}"),
    "busy_share": _share("share of the call in which a kernel runs"),
    "bytes_per_load_request": _count("bytes a load request of a warp"),
    "bytes_per_store_request": _count("bytes a store request of a warp"),
    "busy_threads": Unit("threads at work"),
    "conflict_ways": Unit("wavefronts for each one that shared memory needs", "{:.2f}"),
    "dram_pct": _peak("DRAM"),
    "flops_share": _share("share of the rate that the library's products reach here"),
    "fma_pct": _peak("FMA pipe"),
    "fp64_pct": _peak("FP64 pipe"),
    "fp64_share": Unit("share of fp64 among arithmetic instructions", "{:.3f}", noise=0.002),
    "launches": _count("kernels a call"),
    "libm_calls": _count("functions of libm called in inner loops"),
    "library_share": _share("share of the time in PyTorch's and libraries' code"),
    "load_ratio": Unit("bytes loaded over bytes that must move", "{:.2f}"),
    "block": _count("threads a block"),
    "load_efficiency": _share("share of each fetched sector that is used"),
    "local_requests": _count("accesses to local memory"),
    "occupancy_limit_pct": Unit("possible occupancy", _PCT, noise=2.0),
    "occupancy_pct": Unit("occupancy", _PCT, noise=2.0),
    "packed_share": _share("share of packed among floating-point instructions"),
    "sectors_per_load": Unit("sectors a load request"),
    "sectors_per_store": Unit("sectors a store request"),
    "stall_barrier": _stall("barriers"),
    "stall_long_scoreboard": _stall("global memory"),
    "stall_mbarrier": _stall("mbarriers"),
    "stall_mio_throttle": _stall("the queue of shared memory"),
    "stall_short_scoreboard": _stall("shared memory or special functions"),
    "store_efficiency": _share("share of each written sector that was asked for"),
    "tail_share": _share("idle share of the last wave"),
    "tensor_pct": _peak("tensor cores"),
    "traffic_ratio": Unit("DRAM bytes over bytes that must move", "{:.2f}"),
    "uneven_share": _share("share of the time in which an SM is idle"),
    "widest_bits": _count("width of the widest vector registers"),
}


def unit(figure: str) -> Unit:
    """The unit of a figure; a plain number under its own name where the table lacks it."""
    return UNITS.get(figure) or Unit(figure.replace("_", " "), "{:.3g}")
