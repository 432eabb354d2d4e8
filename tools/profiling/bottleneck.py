"""What limits a candidate, as one of few words that programs can count."""

from __future__ import annotations

from enum import StrEnum


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
