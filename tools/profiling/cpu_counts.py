"""What the processor counted in a call on a CPU, as ratios that mean the same on any processor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tools.profiling.profile_facts import percent

_LINE_BYTES = 64.0
"""Of a cache line, on x86-64 and on most others."""


def counted(counts: Mapping[str, float], must_bytes: float) -> Iterator[tuple[str, float]]:
    """Figures by name; what was not counted is left out. `must_bytes`: that must move at least."""
    cycles = counts.get("cycles", 0.0)
    for name, above in (
        ("cycle_instructions", "instructions"),
        ("branch_misses_per_cycle", "branch_misses"),
        ("l1_misses_per_cycle", "l1_misses"),
    ):
        if cycles > 0 and above in counts:
            yield name, counts[above] / cycles
    for name, above, below in (
        ("branch_miss_share", "branch_misses", "branches"),
        ("l1_miss_share", "l1_misses", "l1_loads"),
        ("cache_miss_share", "cache_misses", "cache_references"),
    ):
        if above in counts and counts.get(below, 0.0) > 0:
            yield name, counts[above] / counts[below]
    if "l1_misses" in counts and must_bytes > 0:
        yield "cache_lines_ratio", counts["l1_misses"] * _LINE_BYTES / must_bytes


def counted_words(counts: Mapping[str, float]) -> str:
    """Instructions a cycle and the shares that miss; empty where nothing was counted."""
    known = dict(counted(counts, 0.0))
    parts = []
    if (rate := known.get("cycle_instructions")) is not None:
        parts.append(f"{rate:.2f} instructions a cycle")
    shares = [
        f"{percent(known[name])} of {words}"
        for name, words in (
            ("l1_miss_share", "L1 loads"),
            ("cache_miss_share", "accesses to the last cache"),
            ("branch_miss_share", "branches"),
        )
        if name in known
    ]
    if shares:
        parts.append(f"missed: {', '.join(shares)}")
    return "; ".join(parts)
