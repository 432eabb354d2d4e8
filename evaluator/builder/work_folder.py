"""Folders for work in hand inside the cache; what a killed process left of them is swept."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "work-"
_LOCKED_WITHIN_S = 60.0
"""A folder is locked as soon as it is made: one of this age without a lock is abandoned."""


@contextmanager
def work_folder(parent: Path) -> Iterator[Path]:
    """A new folder in `parent`, locked while it is in use and gone afterwards. Raises `OSError`."""
    folder = Path(tempfile.mkdtemp(dir=parent, prefix=PREFIX))
    handle = None
    try:
        # Not inherited by what is started meanwhile: the lock ends with this process.
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_SH)
        folder.chmod(0o755)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def sweep(parent: Path) -> None:
    """Remove the folders in `parent` that no living process works in; none without file locks."""
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):
            _sweep(folder)


def _sweep(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        age_s = time.time() - os.fstat(handle).st_mtime
        # Raises where it is locked, or where the file system knows no locks.
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if age_s > _LOCKED_WITHIN_S:
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(handle)
