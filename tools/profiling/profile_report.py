"""What a profiler said about one candidate, digested: the same model whatever the profiler was."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from evaluator.record import Record

MOST_ADVICE = 3
"""Pieces of advice a turn."""


class ProfilerTier(StrEnum):
    """Which profiler was used, best first. Comparisons never mix tiers silently."""

    NCU = "ncu"
    TORCH_TRACE = "torch_trace"
    CPU = "cpu"


class Bottleneck(StrEnum):
    """What limits a candidate most. No two of these are ever described in the same words."""

    MEMORY_BANDWIDTH = "memory_bandwidth"
    CACHE_BANDWIDTH = "cache_bandwidth"
    COMPUTE = "compute"
    LATENCY = "latency"
    OCCUPANCY = "occupancy"
    TOO_FEW_BLOCKS = "too_few_blocks"
    LAUNCH_OVERHEAD = "launch_overhead"
    LIBRARY = "library"
    REDUNDANT_TRAFFIC = "redundant_traffic"
    SINGLE_THREAD = "single_thread"
    NOT_VECTORISED = "not_vectorised"
    AT_THE_BOUND = "at_the_bound"
    UNKNOWN = "unknown"


class Direction(StrEnum):
    UP = "up"
    DOWN = "down"


class Advice(Record):
    """What to change, on which figures that rests, and what would show that it worked."""

    rule: str
    evidence: str
    change: str
    figure: str
    """Name in `Profile.figures` of what should move."""
    direction: Direction
    before: float
    gain: float = Field(ge=0.0, le=1.0)
    """Estimated share of the call's time that it could save. They are ranked by it."""


class AdviceScore(Record):
    rule: str
    figure: str
    direction: Direction
    before: float
    after: float | None
    """None: the next profile does not know the figure."""
    moved: bool | None
    """The figure moved as predicted, by more than it varies by itself; None: not known."""
    latency_before_us: float | None
    latency_after_us: float | None
    predicted_gain: float


class KernelShare(Record):
    """One kernel (or CPU operator) of a forward call, launches of the same name together."""

    name: str
    own: bool
    """True for the candidate's own kernels, False for those of PyTorch or a library."""
    launches: int
    time_us: float
    share: float
    """Of the device time of one forward call, 0 to 1."""
    metrics: dict[str, float | None] = Field(default_factory=dict)
    """None: this chip or this profiler does not know the metric (n/a)."""


class Profile(Record):
    """One candidate, profiled: what limits it, on which figures that rests, how far it could go."""

    rung: ProfilerTier
    rung_reason: str = ""
    """Why no better tier was used; empty for the best one on this kind of device."""
    device: str
    bottleneck: Bottleneck
    headline: str
    """One sentence that names the bottleneck and the figure that shows it."""
    kernels: tuple[KernelShare, ...]
    latency_us: float | None = None
    bound_us: float | None = None
    sol_fraction: float | None = None
    missing: tuple[str, ...] = ()
    figures: dict[str, float] = Field(default_factory=dict)
    """What the rules of advice read, of the hottest kernel and of the whole call, by name."""
    advice: tuple[Advice, ...] = ()
    """At most three pieces, the one with most to gain first."""
    summary: str
    """For the prompt: at most 25 lines."""
    seconds: float = 0.0
    isolation: tuple[str, ...] = ()
    """The walls around the process that ran the candidate: those of the judge, or none (`ncu`)."""
    stages: dict[str, float] = Field(default_factory=dict)
    """Where these seconds went, by the names of `Collected.seconds`."""
