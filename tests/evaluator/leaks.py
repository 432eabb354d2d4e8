"""What a judge holds on to: processes, descriptors, folders, memory; before and after a crowd."""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import dataclass
from pathlib import Path

_PAGE_KIB = 4


@dataclass(frozen=True)
class Holdings:
    """What the processes below one process hold, by /proc."""

    processes: int
    descriptors: int
    folders: int
    """Scratch folders in the temporary folder."""
    memory_kib: int
    """Resident, in the judge alone: its children share most of theirs."""


def holdings(judge: int) -> Holdings:
    """Count what belongs to the judge with this pid and its descendants."""
    family = process_family(judge)
    return Holdings(
        processes=len(family),
        descriptors=sum(map(open_files, family)),
        folders=sum(1 for folder in _scratch_folders() for _ in folder.iterdir()),
        memory_kib=int(Path(f"/proc/{judge}/statm").read_text().split()[1]) * _PAGE_KIB,
    )


def _scratch_folders() -> list[Path]:
    return list(Path(tempfile.gettempdir()).glob("refinery-*"))


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
