"""How much of this machine's memory is still to be had."""

from __future__ import annotations

import re
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evaluator.hardware.kernel_files import read_text

_MEMINFO = Path("/proc/meminfo")
_STATUS = Path("/proc/self/status")


def free_share(meminfo: Path = _MEMINFO) -> float:
    """`MemAvailable` over `MemTotal`, 0..1; 1 where the kernel does not tell (Linux before 3.14).

    A control group's limit is not looked at: what counts against it includes the files it read.
    """
    told = _told(meminfo)
    if "MemAvailable" not in told or "MemTotal" not in told:
        return 1.0
    return told["MemAvailable"] / told["MemTotal"]


def available_bytes(meminfo: Path = _MEMINFO) -> int | None:
    """`MemAvailable`, likewise; None where the kernel does not tell."""
    return _told(meminfo).get("MemAvailable")


@contextmanager
def growth_limited(more_bytes: int | None) -> Iterator[None]:
    """While this lasts, this process gets an exception where it takes so much more memory.

    None, or a kernel that does not tell what the process holds: there is no limit.
    """
    held = _told(_STATUS).get("VmData")
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if more_bytes is None or held is None or hard != resource.RLIM_INFINITY:
        yield
        return
    resource.setrlimit(resource.RLIMIT_DATA, (held + more_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _told(file: Path) -> dict[str, int]:
    lines = re.findall(r"^(\w+):\s+(\d+) kB$", read_text(file), re.MULTILINE)
    return {name: 1024 * int(kilobytes) for name, kilobytes in lines}
