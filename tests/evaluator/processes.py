"""What the system knows about processes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from pathlib import Path

from tests.waiting import once


def is_running(pid: int) -> bool:
    """Whether it is there and not only waiting for somebody to take note of its end."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def descendants(pid: int) -> set[int]:
    """The children of a process, and theirs; none of one that is gone."""
    found: set[int] = set()
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found |= {child} | descendants(child)
    return found


def descendants_once(word: str, pid: int) -> set[int]:
    """`descendants`, once the command line of one of them has that word in it."""

    def found() -> set[int]:
        below = descendants(pid)
        return below if any(word in command_line(each) for each in below) else set()

    return once(found, why=lambda: f"no process below {pid} runs {word}")


def command_line(pid: int) -> str:
    """Its words; empty for a process that is gone."""
    try:
        return (
            Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        )
    except OSError:  # it is gone
        return ""


def still_running(pids: Iterable[int], patience_s: float = 30.0) -> set[int]:
    """Those of `pids` that have not ended after `patience_s`."""
    left, end = set(pids), time.monotonic() + patience_s
    while (left := {pid for pid in left if is_running(pid)}) and time.monotonic() < end:
        time.sleep(0.05)
    return left
