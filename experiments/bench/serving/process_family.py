"""Processes below another one, by /proc, and the files that they have open."""

from __future__ import annotations

import contextlib
from pathlib import Path


def process_family(root: int) -> list[int]:
    """The process with this pid and all below it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # others come and go while we look
                parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
                children.setdefault(int(parent), []).append(int(entry.name))
    family, queue = [], [root]
    while queue:
        pid = queue.pop()
        family.append(pid)
        queue += children.get(pid, [])
    return family


def open_files(pid: int) -> int:
    """How many files a process has open; 0 for one that has ended."""
    with contextlib.suppress(OSError):
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return 0
