"""How much of this machine's memory is still to be had."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evaluator.hardware.kernel_files import kilobyte_fields

_MEMINFO = Path("/proc/meminfo")
_STATUS = Path("/proc/self/status")


def free_share(meminfo: Path = _MEMINFO) -> float:
    """`MemAvailable` over `MemTotal`, 0..1; 1 before Linux 3.14.

    A control group's limit is not looked at: what counts against it includes the files it read.
    """
    memory = kilobyte_fields(meminfo)
    if "MemAvailable" not in memory or "MemTotal" not in memory:
        return 1.0
    return memory["MemAvailable"] / memory["MemTotal"]


def available_bytes(meminfo: Path = _MEMINFO) -> int | None:
    """`MemAvailable`; None where the kernel does not report it."""
    return kilobyte_fields(meminfo).get("MemAvailable")


@contextmanager
def growth_limited(more_bytes: int | None) -> Iterator[None]:
    """While this lasts, this process gets an exception where it takes so much more memory.

    There is no limit for None, or where the kernel does not report what the process holds.
    """
    held = kilobyte_fields(_STATUS).get("VmData")
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if more_bytes is None or held is None or hard != resource.RLIM_INFINITY:
        yield
        return
    resource.setrlimit(resource.RLIMIT_DATA, (held + more_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
