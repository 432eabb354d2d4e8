"""What a worker does while no call of its own is being timed: nothing.

Its process group is stopped from the word that forward returned until the clock of its next call
runs, but for getting ready. So it can neither work on after its return, nor begin before its time,
nor take processors from the other worker, whose turn it is. On some calls it is let go on until it
rests: the outputs must still be what they were, and a worker that never rests is refused.

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

from evaluator.errors import InfrastructureError

_SHOWS_CHILDREN = Path("/proc/thread-self/children").exists()
_STOP_TIMEOUT_S = 5.0
_LOOKS, _LOOK_S = 3, 0.002
_FEWEST_BUSY_LOOKS = 50
"""Made in a fraction of the patience, unless the machine itself stood still meanwhile."""
_PAGE_BYTES = 4096
_FEWEST_CALLS, _EARLY_SLACK_US = 6, 500.0
PATIENCE_S = 2.0
"""So long may threads stay runnable after a call before this counts as work. Idle OpenMP threads
sleep after about 1 ms, those of Intel's OpenMP after 200 ms."""


@dataclass(frozen=True)
class Task:
    """One thread of a worker: process, process group, and letter of its state (R, S, D, T, ...)."""

    process: int
    group: int
    state: str


def hold(pid: int) -> None:
    """Have a worker's process group stop; some microseconds pass until it has."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(-pid, signal.SIGSTOP)


def let_go(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(-pid, signal.SIGCONT)


def stands_still(pid: int, init: int | None = None) -> bool:
    """Whether a stopped worker and all that it has started stand still, within some seconds: one
    in a long system call cannot be stopped.

    All of its group must have stopped: a child that slept would wake while others are timed. What
    left the group, where no wall prevents that, must sleep.
    """
    deadline = time.monotonic() + _STOP_TIMEOUT_S
    while any(
        task.state in "RD" or (task.group == pid and task.state not in "TtZX")
        for task in tasks(pid, init)
    ):
        if time.monotonic() > deadline:
            return False
        time.sleep(0)
    return True


def comes_to_rest(pid: int, init: int | None = None, patience_s: float = PATIENCE_S) -> bool:
    """Whether all threads of a worker and of its descendants sleep, within `patience_s`.

    Where we came to look a few times only, the worker hardly came to run either: a virtual machine
    that was paused, or processors that others took. Then it may take longer.
    """
    deadline = time.monotonic() + patience_s
    quiet = busy = 0
    while quiet < _LOOKS:
        if any(task.state in "RD" for task in tasks(pid, init)):
            quiet = 0
            busy += 1
            if busy >= _FEWEST_BUSY_LOOKS and time.monotonic() > deadline:
                return False
        else:
            quiet += 1
        time.sleep(_LOOK_S)
    return True


def tasks(pid: int, init: int | None = None) -> list[Task]:
    """The threads of a worker and of its descendants. `init`: the first process of its PID
    namespace, which orphans belong to; where it has none, they belong to the worker."""
    if not _SHOWS_CHILDREN:
        raise InfrastructureError("this Linux does not list children (CONFIG_PROC_CHILDREN)")
    found, waiting = list[Task](), [pid] if init is None else [init, pid]
    while waiting:
        # What loses its parent meanwhile has come to `init`, which is looked at last.
        process = waiting.pop()
        with contextlib.suppress(OSError), os.scandir(f"/proc/{process}/task") as listing:
            for thread in listing:
                with contextlib.suppress(OSError):
                    found.append(_task(process, thread.path))
                    waiting += map(int, _read(f"{thread.path}/children").split())
    return found


def _task(process: int, folder: str) -> Task:
    state, _, group, *_ = _read(f"{folder}/stat").rpartition(b")")[2].decode().split()
    return Task(process, int(group), state)


def _read(name: str) -> bytes:
    # Workers are looked at in each timed call: this takes half of what a file object does.
    file = os.open(name, os.O_RDONLY)
    try:
        # A page at a time, at most.
        return b"".join(iter(lambda: os.read(file, _PAGE_BYTES), b""))
    finally:
        os.close(file)


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
    try:
        return _task(pid, f"/proc/{pid}").state in "ZX"
    except OSError:
        return True


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
