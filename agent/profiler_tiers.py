"""Which profilers work on this machine, best first; why one does not, and how to get it.

Nothing here touches a device: what only a trial can show is reported as far as it can be seen.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evaluator.collect.counters import counter_rights
from evaluator.collect.counters.perf_counters import refusal
from evaluator.walls.privileges import may_watch

_GVISOR_RELEASE = "4.4.0"
"""What gVisor answers when it is asked for the kernel's version, whatever runs below it."""
_OPEN_COUNTERS = (
    "ncu says ERR_NVGPUCTRPERM: load the nvidia module with NVreg_RestrictProfilingToAdminUsers=0 "
    "(in /etc/modprobe.d, then reboot), or run as root"
)
_OPEN_CONTAINER = (
    "ncu says ERR_NVGPUCTRPERM: start the container with --cap-add PERFMON, or open the counters "
    "to all users on its host (NVreg_RestrictProfilingToAdminUsers=0)"
)
_NEWER_DRIVER = (
    "before R565 counters ask for CAP_SYS_ADMIN, which no candidate gets: open them to all users "
    "(NVreg_RestrictProfilingToAdminUsers=0), or take a newer driver"
)


@dataclass(frozen=True)
class ProfilerTier:
    """One profiler, or what one needs. `note`: it can't be told without trying."""

    name: str
    state: Literal["yes", "no", "note"]
    found: str
    remedy: str = ""


def counters(*, root: bool | None = None) -> ProfilerTier | None:
    """Whether `ncu` may read a GPU's counters; None where there is no driver to ask."""
    root = os.geteuid() == 0 if root is None else root
    if platform.release() == _GVISOR_RELEASE:
        remedy = (
            "profiles come from torch.profiler; for ncu use a container without gVisor, or a VM"
        )
        return ProfilerTier("counters", "no", "gVisor hides them", remedy)
    try:
        restricted = counter_rights.for_administrators()
    except OSError as error:
        return ProfilerTier("counters", "note", f"can't tell: {error.strerror}")
    if restricted is None:
        return None
    if not restricted:
        return ProfilerTier("counters", "yes", "open to users")
    if not root:
        return ProfilerTier("counters", "no", "root only", _OPEN_COUNTERS)
    release = counter_rights.release()
    if release is not None and release < counter_rights.WATCHERS_SINCE:
        return ProfilerTier("counters", "no", f"driver {release}", _NEWER_DRIVER)
    if not may_watch():
        return ProfilerTier("counters", "no", "root without CAP_PERFMON", _OPEN_CONTAINER)
    return ProfilerTier("counters", "yes", "root, CAP_PERFMON")


def code(program: Path | None) -> ProfilerTier:
    """The last tier: reading compiled kernels. `program`: `cuobjdump`, where it is."""
    if program is not None:
        return ProfilerTier("cuobjdump", "yes", str(program))
    remedy = "comes with the CUDA toolkit and with Triton; only where no profiler works"
    return ProfilerTier("cuobjdump", "note", "", remedy)


def processor() -> ProfilerTier:
    """Whether the CPU's own counters may be read; profiles on a CPU do without where not."""
    refused = refusal()
    if refused is None:
        return ProfilerTier("CPU counters", "yes", "open to users")
    return ProfilerTier("CPU counters", "note", str(refused), refused.remedy)
