"""What a worker does while no call of its own is being timed: nothing.

Its process group is stopped from the word that forward returned until it is prepared for the next
call. So it can neither work on after its return, nor compute with the next inputs before they are
complete, nor take processors from the other worker, whose turn it is. On some calls it is let go on
until it rests: the outputs must still be what they were, and a worker that never rests is refused.

Rest is judged by the states of its threads and not by their processor time: an idle pool goes to
sleep sooner or later, on a loaded machine too, and a thread that computes is runnable even while
it waits for a processor.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

_STOP_TIMEOUT_S = 5.0
_LOOKS, _LOOK_S = 3, 0.002
_FEWEST_BUSY_LOOKS = 50
"""Made in a fraction of the patience, unless the machine itself stood still meanwhile."""
_MOST_STAT_BYTES = 4096
_FEWEST_CALLS, _EARLY_SLACK_US = 6, 500.0
PATIENCE_S = 2.0
"""So long may threads stay runnable after a call before this counts as work. Idle OpenMP threads
sleep after about 1 ms, those of Intel's OpenMP after 200 ms."""


@dataclass(frozen=True)
class Task:
    """One thread of a worker: its process and the letter of its state (R, S, D, T, ...)."""

    process: int
    state: str


def hold(pid: int) -> None:
    """Have a worker's process group stop; some microseconds pass until it has."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(-pid, signal.SIGSTOP)


def let_go(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(-pid, signal.SIGCONT)


def wait_until_held(pid: int) -> bool:
    """Whether every thread of a stopped worker stands still, within some seconds."""
    deadline = time.monotonic() + _STOP_TIMEOUT_S
    while any(task.state not in "TtZX" for task in _threads(pid)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0)
    return True


def stands_still(pid: int) -> bool:
    """Whether a stopped worker and all that it has started stand still, within some seconds.

    Its own threads must have stopped. What left its group, where no wall prevents that, must sleep.
    """
    deadline = time.monotonic() + _STOP_TIMEOUT_S
    while not wait_until_held(pid) or any(task.state in "RD" for task in tasks(pid)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0)
    return True


def comes_to_rest(pid: int, patience_s: float = PATIENCE_S) -> bool:
    """Whether all threads of a worker and of its descendants sleep, within `patience_s`.

    Where we came to look a few times only, the worker hardly came to run either: a virtual machine
    that was paused, or processors that others took. Then it may take longer.
    """
    deadline = time.monotonic() + patience_s
    quiet = busy = 0
    while quiet < _LOOKS:
        if any(task.state in "RD" for task in tasks(pid)):
            quiet = 0
            busy += 1
            if busy >= _FEWEST_BUSY_LOOKS and time.monotonic() > deadline:
                return False
        else:
            quiet += 1
        time.sleep(_LOOK_S)
    return True


def tasks(pid: int) -> list[Task]:
    """The threads of a worker, of its group and session, and of all their descendants.

    Where it has a PID namespace of its own, those of everything in there: orphans as well.
    """
    families: dict[int, tuple[int, int, int]] = {}
    apart = _namespace(pid)
    if apart == _namespace(os.getpid()):
        apart = None
    found = {pid}
    with os.scandir("/proc") as listing:
        entries = list(listing)
    for entry in entries:
        if entry.name.isdecimal():
            process = int(entry.name)
            fields = _stat(entry.path)
            if fields is not None:
                families[process] = (int(fields[1]), int(fields[2]), int(fields[3]))
                if apart and _namespace(process) == apart:
                    found.add(process)
    found |= {p for p, (_, group, session) in families.items() if pid in (group, session)}
    grown = True
    while grown:
        more = {p for p, (parent, _, _) in families.items() if parent in found} - found
        found |= more
        grown = bool(more)
    return [task for process in sorted(found) for task in _threads(process)]


def _namespace(pid: int) -> str | None:
    try:
        return str(Path(f"/proc/{pid}/ns/pid").readlink())
    except OSError:
        return None


def _threads(pid: int) -> list[Task]:
    try:
        with os.scandir(f"/proc/{pid}/task") as listing:
            states = [_stat(thread.path) for thread in listing]
    except OSError:
        return []
    return [Task(pid, fields[0]) for fields in states if fields is not None]


def _stat(folder: str) -> list[str] | None:
    # All processes are looked at between timed calls: this takes half of what a file object does.
    try:
        file = os.open(f"{folder}/stat", os.O_RDONLY)
        try:
            stat = os.read(file, _MOST_STAT_BYTES)
        finally:
            os.close(file)
    except OSError:
        return None
    return stat.rpartition(b")")[2].decode().split()


def works_early(mine_us: list[float], baseline_us: list[float]) -> bool:
    """Whether a worker takes too long to get ready, by what a baseline's takes for the same calls.

    Both run the same few trusted lines then, but a candidate may have put its work there. Three
    quarters of its calls must be slower than anything that the baseline showed: on a loaded machine
    single calls of either are late, not most of one's and none of the other's.
    """
    if min(len(mine_us), len(baseline_us)) < _FEWEST_CALLS:
        return False
    quick = sorted(mine_us)[len(mine_us) // 4]
    return quick > 1.5 * max(baseline_us) + _EARLY_SLACK_US


def is_gone(pid: int) -> bool:
    fields = _stat(f"/proc/{pid}")
    return fields is None or fields[0] in "ZX"


def mapped_at(pid: int, descriptor: int) -> list[tuple[int, int]]:
    """Where a worker maps the file behind our `descriptor`: first address, the one after the last.

    Raises `OSError` where its map can't be read.
    """
    inode = str(os.fstat(descriptor).st_ino)
    spans = []
    with Path(f"/proc/{pid}/maps").open() as maps:
        for line in maps:
            span, _, _, device, node, *_ = line.split()
            if node == inode and device.startswith("00:"):
                first, last = span.split("-")
                spans.append((int(first, 16), int(last, 16)))
    return spans
