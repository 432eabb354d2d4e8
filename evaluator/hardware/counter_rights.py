"""Which users may read a GPU's performance counters, as the driver says."""

from __future__ import annotations

import re
from pathlib import Path

WATCHERS_SINCE = 565
"""As NVIDIA's page on ERR_NVGPUCTRPERM has it: from R565 on CAP_PERFMON is enough."""
_PARAMETERS = Path("/proc/driver/nvidia/params")
_VERSION = Path("/sys/module/nvidia/version")
_CONTROL = Path("/dev/nvidiactl")


def for_administrators() -> bool | None:
    """Whether the driver keeps them from other users, as it comes; None where there is no driver.

    Raises `OSError` where it is unknown: a container may lack only the driver's parameters.
    """
    try:
        return "RmProfilingAdminOnly: 0" not in _PARAMETERS.read_text()
    except FileNotFoundError:
        if _CONTROL.exists():
            raise
        return None


def release() -> int | None:
    try:
        found = re.match(r"\d+", _VERSION.read_text())
    except OSError:
        return None
    return int(found[0]) if found is not None else None
