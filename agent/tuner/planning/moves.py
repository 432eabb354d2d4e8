"""What to try next, by what the profiler named as the bottleneck, and whom to blame for a failure.

A move is one or more choices that belong together, written as in a plan. Knobs that a family lacks
are passed over, so one table serves every family of a backend.
"""

from __future__ import annotations

from collections.abc import Mapping

CPP: Mapping[str, tuple[str, ...]] = {
    "single_thread": ("threads=all", "threads=half"),
    "not_vectorised": ("vec=16", "maths=poly", "vec=8"),
    "compute": ("maths=poly", "vec=16", "stage=stack", "unroll=on"),
    "memory_bandwidth": ("stores=stream", "threads=all", "vec=16", "chunk=16"),
    "cache_bandwidth": ("stage=stack", "chunk=16"),
    "redundant_traffic": ("stage=stack", "stores=plain"),
    "latency": ("unroll=on", "acc=fp32", "chunk=16"),
    "launch_overhead": ("threads=half", "threads=one", "chunk=64"),
    "too_few_blocks": ("chunk=1", "chunk=4", "threads=all"),
}

CUDA: Mapping[str, tuple[str, ...]] = {
    "memory_bandwidth": ("vec=4", "stage=regs team=all", "items=2"),
    # A row is read once where all threads of a block hold it together.
    "redundant_traffic": ("stage=regs team=all", "stage=smem team=all"),
    "cache_bandwidth": ("vec=4", "stage=regs team=all", "team=32"),
    "too_few_blocks": ("threads=128", "team=all", "threads=64", "items=1"),
    # The more threads share a row, the less of it each must hold.
    "occupancy": ("team=all threads=256", "min=2", "stage=none", "threads=128", "min=4", "items=1"),
    "latency": ("vec=4", "items=4", "team=all threads=512", "stage=regs", "items=8"),
    "compute": ("maths=fast", "acc=fp32", "vec=4", "items=4", "maths=flags"),
    "launch_overhead": ("threads=1024",),
    "at_the_bound": ("threads=512", "threads=128"),
}
"""`library` has no move: the time is not ours."""

MOVES: Mapping[str, Mapping[str, tuple[str, ...]]] = {"cpp": CPP, "cuda": CUDA}
"""Backend -> bottleneck -> moves, best first."""

BLAME: Mapping[str, tuple[str, ...]] = {
    "build_error": ("vec", "stage", "stores"),
    "runtime_error": ("threads", "stage"),
    "timeout": ("stage", "threads"),
    "incorrect": ("maths", "acc"),
}
"""Status -> the knobs that most likely caused it, likeliest first."""
