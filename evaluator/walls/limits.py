"""Limits on what a worker may use up."""

from __future__ import annotations

import contextlib
import os
import resource
from pathlib import Path

SHARED_PROCESSES = 4096
_FEWEST_PROCESSES = 512
_PROCESSES_A_CPU = 16
_MOST_BYTES = 2**63 - 1


def most_processes(*, own_uid: bool) -> int:
    """How many processes and threads a worker may have at once.

    The kernel counts them by user: one that is shared needs room for all who share it.
    """
    if not own_uid:
        return SHARED_PROCESSES
    return max(_FEWEST_PROCESSES, _PROCESSES_A_CPU * (os.cpu_count() or 1))


def prefer_oom_kill() -> None:
    """The process that uses up the memory is killed, not the judge."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def limit(*, memory_bytes: int | None, cpu_seconds: int, file_bytes: int, processes: int) -> None:
    """Set the limits for good; a lower one that is already set is kept.

    `memory_bytes` is of address space, None for no limit: CUDA reserves far more than it uses.
    """
    limits = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: cpu_seconds,
        resource.RLIMIT_FSIZE: file_bytes,
        resource.RLIMIT_NPROC: processes,
        resource.RLIMIT_NOFILE: 1024,
    }
    if memory_bytes is not None:
        limits[resource.RLIMIT_AS] = min(memory_bytes, _MOST_BYTES)
    for which, value in limits.items():
        hard = resource.getrlimit(which)[1]
        cap = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (cap, cap))


def mapped_bytes() -> int:
    """The address space that this process has taken: gigabytes, with PyTorch for CUDA in it."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
