"""What a rule finds, and the table of thresholds that all rules share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tools.profiling.profile_facts import Facts, percent
from tools.profiling.profile_report import Bottleneck


@dataclass(frozen=True)
class Finding:
    """What limits a candidate, and the figure that shows it in one sentence."""

    bottleneck: Bottleneck
    headline: str


@dataclass(frozen=True)
class Thresholds:
    """Where a figure begins to mean something. Shares are 0 to 1, `_pct` are of a peak."""

    at_the_bound: float = 0.85
    """Share of the speed of light above which little is left to gain."""
    library: float = 0.5
    """Share of the time in PyTorch's and libraries' kernels."""
    idle_device: float = 0.6
    """Below this share of busy time, launches and gaps matter more than the kernels."""
    tiny_kernel_us: float = 5.0
    many_launches: int = 8
    extra_traffic: float = 1.5
    """Bytes moved over bytes that must move."""
    traffic_dram_pct: float = 40.0
    dram_pct: float = 65.0
    cache_pct: float = 75.0
    compute_pct: float = 65.0
    few_waves: float = 0.5
    """Of what the device holds at once. Persistent kernels fill one on purpose, or half of one."""
    occupancy_pct: float = 35.0
    occupancy_limit_pct: float = 50.0
    implied_bandwidth: float = 0.6
    """Share of the measured bandwidth that bytes over time amount to, without counters."""
    busy_threads: float = 0.65
    """Share of the threads that the work must be spread over."""
    threadable_us: float = 50.0
    """A call shorter than this does not repay waking other threads."""
    packed: float = 0.25
    """Share of packed among the floating-point instructions of inner loops."""
    system_share: float = 0.3
    """Share of the processor time spent on mapping memory, above which that counts."""
    intensity: float = 1.5
    """Operations for each byte (a transcendental one counts 20) above which arithmetic can limit
    vectorised code on all threads of a CPU."""
    glue: float = 0.5
    """Share of a CPU call outside of operators and own functions: Python and dispatch."""


LIMITS = Thresholds()


Rule = Callable[[Facts], Finding | None]


def at_the_bound(facts: Facts) -> Finding | None:
    """On any device: close to the speed of light there is nothing else to say."""
    fraction = facts.sol_fraction
    if fraction is None or fraction < LIMITS.at_the_bound:
        return None
    return Finding(
        Bottleneck.AT_THE_BOUND,
        f"It reaches {percent(fraction)} of the speed of light for this work: little is left to"
        " gain.",
    )
