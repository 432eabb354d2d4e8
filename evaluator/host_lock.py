"""Locks by name between processes and users of a host; each ends with whoever holds it."""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LOCKS = "KERNEL_REFINERY_LOCKS"
"""Set for a process that has a folder of its own for temporary files: where the locks are."""


def lock_folder() -> Path:
    """Where all processes of ours on this host find the same locks."""
    return Path(os.environ.get(LOCKS) or tempfile.gettempdir())


@contextmanager
def host_lock(name: str, *, most_s: float | None = None) -> Iterator[None]:
    """Hold what is called `name` alone; waits for whoever has it, at most `most_s`, if given:
    then goes on without."""
    path = lock_folder() / f"kernel-refinery-{name}.lock"
    # Another user may have made it: opening for reading is enough to lock it.
    flags = os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        handle = os.open(path, flags, 0o666)
    except PermissionError:
        # A sticky /tmp refuses O_CREAT on a file of another user's, even where it exists.
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        if most_s is None:
            fcntl.flock(handle, fcntl.LOCK_EX)
        else:
            _try_for(handle, most_s)
        yield
    finally:
        os.close(handle)


def _try_for(handle: int, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(0.005)
