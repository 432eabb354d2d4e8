"""Who may read a GPU's performance counters: the driver's word, and this process's rights."""

from __future__ import annotations

import re
from pathlib import Path

from evaluator.walls.privileges import Right, has

_DRIVER = Path("/proc/driver/nvidia")
_CONTROL = Path("/dev/nvidiactl")


def for_administrators() -> bool | None:
    """Whether the driver keeps them from other users, as it comes; None where there is no driver.

    Raises `OSError` where it can't be told.
    """
    try:
        return "RmProfilingAdminOnly: 0" not in (_DRIVER / "params").read_text()
    except FileNotFoundError:
        # A container may lack the one and have the other.
        return True if _CONTROL.exists() else None


def enough() -> tuple[Right, ...]:
    """The rights of root's of which any one opens them, the least first.

    As NVIDIA's page on ERR_NVGPUCTRPERM has it: CAP_SYS_ADMIN, and since R565 CAP_PERFMON.
    """
    newer = (Right.PERFMON,) if _release() >= 565 else ()
    return (*newer, Right.SYS_ADMIN)


def least_held() -> Right | None:
    """The least of them that this process has."""
    return next((right for right in enough() if has(right)), None)


def _release() -> int:
    """Of the driver; 0 where it doesn't say so."""
    try:
        said = (_DRIVER / "version").read_text()
    except OSError:
        return 0
    found = re.search(r"NVRM version:.*?\s(\d{3,})\.\d+", said)
    return int(found[1]) if found is not None else 0
