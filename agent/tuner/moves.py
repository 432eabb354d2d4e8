"""What to try next, by what the profiler named as the bottleneck, and whom to blame for a failure.

Knobs that a family lacks are passed over, so one table serves every family of a backend.
"""

from __future__ import annotations

from collections.abc import Mapping

Move = tuple[str, str]
"""A knob and the choice to try."""

CPP: Mapping[str, tuple[Move, ...]] = {
    "single_thread": (("threads", "all"), ("threads", "half")),
    "not_vectorised": (("vec", "16"), ("maths", "poly"), ("vec", "8")),
    "compute": (("maths", "poly"), ("vec", "16"), ("stage", "stack"), ("unroll", "on")),
    "memory_bandwidth": (
        ("stores", "stream"),
        ("passes", "fewest"),
        ("threads", "all"),
        ("vec", "16"),
        ("chunk", "16"),
    ),
    "cache_bandwidth": (("stage", "stack"), ("passes", "fewest"), ("chunk", "16")),
    "redundant_traffic": (("stage", "stack"), ("passes", "fewest"), ("stores", "plain")),
    "latency": (("unroll", "on"), ("acc", "blocked"), ("chunk", "16")),
    "launch_overhead": (("threads", "half"), ("threads", "one"), ("chunk", "64")),
    "too_few_blocks": (("chunk", "1"), ("chunk", "4"), ("threads", "all")),
    "at_the_bound": (("stores", "stream"), ("stores", "plain")),
}

MOVES: Mapping[str, Mapping[str, tuple[Move, ...]]] = {"cpp": CPP}
"""Backend -> bottleneck -> moves, best first."""

BLAME: Mapping[str, tuple[str, ...]] = {
    "build_error": ("vec", "stores"),
    "runtime_error": ("stage", "threads"),
    "timeout": ("stage", "threads"),
    "incorrect": ("maths", "acc", "passes"),
}
"""Status -> the knobs that most likely caused it, likeliest first."""
