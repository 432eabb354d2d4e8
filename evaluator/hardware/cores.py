"""How many processors this process may keep busy: fewer than the machine has, on a shared one."""

from __future__ import annotations

import math
import os
from pathlib import Path

from evaluator.hardware.kernel_files import read_text

_CONTROL_GROUP = Path("/sys/fs/cgroup")


def usable_cores(control_group: Path = _CONTROL_GROUP) -> int:
    """Those that its affinity allows, or the quota of its control group (v1 or v2) if that is less.

    Slurm, Kubernetes and `taskset` give a part of a machine. As many threads as the whole machine
    has processors would then wait for one another.
    """
    allowed = len(os.sched_getaffinity(0))
    quota = _quota(control_group)
    return allowed if quota is None else max(1, min(allowed, math.ceil(quota)))


def _quota(control_group: Path) -> float | None:
    """Processors' worth of time; None where nothing is set."""
    if maximum := read_text(control_group / "cpu.max"):
        quota, _, period = maximum.partition(" ")
    else:
        quota = read_text(control_group / "cpu" / "cpu.cfs_quota_us")
        period = read_text(control_group / "cpu" / "cpu.cfs_period_us")
    if not quota.isdigit() or not period.isdigit():
        return None
    return int(quota) / int(period)
