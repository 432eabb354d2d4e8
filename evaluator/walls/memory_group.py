"""One limit of memory over a worker and all that it starts: a control group of its own.

`rlimits` bind each process by itself, and there may be hundreds. Groups are made by the judge, from
outside, where the system lets it: with cgroup v1 below its own group, with v2 at the root of what
it sees, if memory is accounted for there.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from itertools import count, pairwise
from pathlib import Path

LAYER = "memory_group"
_PREFIX = "refinery-"
_NUMBERS = count()
_GONE_TIMEOUT_S = 5.0
_TRIAL_BYTES = 64 * 2**20
_TRIAL_TIMEOUT_S = 20.0
_GREEDY = f"""
import os, sys
sys.stdin.read(1)
share = b"x" * {_TRIAL_BYTES * 2 // 3}
child = os.fork()
also = b"x" * {_TRIAL_BYTES * 2 // 3}
if child:
    os.waitpid(child, 0)
"""
"""Two processes, each of which keeps the limit; both together don't."""


@dataclass(frozen=True)
class Hierarchy:
    folder: Path
    limit: str
    limit_with_swap: str
    swap_counts: bool
    """The second limit is of memory and swap together, not of swap alone."""
    events: str
    """The file with a line `oom_kill N`."""


def find(mounts: str, own: str) -> Hierarchy | None:
    """The hierarchy in the texts of `/proc/self/mountinfo` and `/proc/self/cgroup`."""
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        kind, _, options = right.split(" ", 2)
        root, point = left.split()[3:5]
        if kind == "cgroup" and "memory" in options.split(","):
            groups = [line.split(":", 2)[1:] for line in own.splitlines()]
            below = next((path for names, path in groups if "memory" in names.split(",")), root)
            at = os.path.relpath(below, root)
            folder = Path(point) if at.startswith("..") else Path(point, at)
            return Hierarchy(
                *(folder, "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", True),
                "memory.oom_control",
            )
        if kind == "cgroup2" and "memory" in _words(Path(point, "cgroup.subtree_control")):
            names = ("memory.max", "memory.swap.max", False, "memory.events")
            return Hierarchy(Path(point), *names)
    return None


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


class MemoryGroup:
    """A group of processes whose memory is limited together. Gone when it is closed."""

    def __init__(self, place: Hierarchy, limit_bytes: int) -> None:
        """Raises `OSError` where it can't be made."""
        self._place = place
        self.folder = place.folder / f"{_PREFIX}{os.getpid()}-{next(_NUMBERS)}"
        self.folder.mkdir()
        try:
            (self.folder / place.limit).write_text(str(limit_bytes))
            swap = self.folder / place.limit_with_swap
            if swap.exists():
                swap.write_text(str(limit_bytes if place.swap_counts else 0))
        except OSError:
            self.folder.rmdir()
            raise

    def add(self, pid: int) -> None:
        """Take a process in; what it starts from now on comes with it. Raises `OSError`."""
        (self.folder / "cgroup.procs").write_text(str(pid))

    @property
    def ran_out(self) -> bool:
        words = _words(self.folder / self._place.events)
        return any(key == "oom_kill" and int(value) > 0 for key, value in pairwise(words))

    def close(self) -> None:
        end = time.monotonic() + _GONE_TIMEOUT_S
        while True:
            for pid in _words(self.folder / "cgroup.procs"):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(int(pid), signal.SIGKILL)
            try:
                self.folder.rmdir()
            except FileNotFoundError:
                return
            except OSError:
                # Somebody is dying still. What can't be removed is swept up by the next judge.
                if time.monotonic() > end:
                    return
                time.sleep(0.002)
            else:
                return


def tried() -> Hierarchy | None:
    """Where groups can be made that hold; None where they can't be, or an attack got through."""
    try:
        own = Path("/proc/self/cgroup").read_text()
        place = find(Path("/proc/self/mountinfo").read_text(), own)
        if place is None:
            return None
        _sweep(place)
        with contextlib.closing(MemoryGroup(place, _TRIAL_BYTES)) as group:
            return place if _holds(group) else None
    except OSError:
        return None


def _holds(group: MemoryGroup) -> bool:
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _GREEDY],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as greedy:
        try:
            group.add(greedy.pid)
            greedy.communicate(b"\n", _TRIAL_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return False
        finally:
            greedy.kill()
    return group.ran_out


def _sweep(place: Hierarchy) -> None:
    for folder in place.folder.glob(f"{_PREFIX}*-*"):
        judge = folder.name.removeprefix(_PREFIX).partition("-")[0]
        if judge.isdigit() and not Path("/proc", judge).exists():
            with contextlib.suppress(OSError):
                folder.rmdir()
