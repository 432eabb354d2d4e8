"""How much of this machine's memory is still to be had."""

from __future__ import annotations

import re
from pathlib import Path

from evaluator.kernel_files import read_text

_MEMINFO = Path("/proc/meminfo")


def free_share(meminfo: Path = _MEMINFO) -> float:
    """`MemAvailable` over `MemTotal`, 0..1; 1 where the kernel does not tell (Linux before 3.14).

    A control group's limit is not looked at: what counts against it includes the files it read.
    """
    told = dict(re.findall(r"^(\w+):\s+(\d+) kB$", read_text(meminfo), re.MULTILINE))
    if "MemAvailable" not in told or "MemTotal" not in told:
        return 1.0
    return int(told["MemAvailable"]) / int(told["MemTotal"])
