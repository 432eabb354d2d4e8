"""What a judge holds on to: processes, descriptors, folders, memory; before and after a crowd."""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.evaluator.processes import descendants

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
    family = {judge} | descendants(judge)
    return Holdings(
        processes=len(family),
        descriptors=sum(map(_open_files, family)),
        folders=len(list(Path(tempfile.gettempdir()).glob("refinery-*/*"))),
        memory_kib=int(Path(f"/proc/{judge}/statm").read_text().split()[1]) * _PAGE_KIB,
    )


def _open_files(pid: int) -> int:
    with contextlib.suppress(OSError):  # it has ended
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return 0
