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
    """Hold what is called `name` alone; waits for whoever has it.

    With `most_s` it only spares work: whoever has waited for so long, or can't have a lock here,
    goes on without.
    """
    handle = None
    try:
        handle = _opened(lock_folder() / f"kernel-refinery-{name}.lock")
    except OSError:
        if most_s is None:
            raise
    try:
        if handle is not None:
            _take(handle, most_s)
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _opened(path: Path) -> int:
    # Another user may have made it: opening for reading is enough to lock it.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        handle = os.open(path, flags | os.O_CREAT, 0o666)
    except PermissionError:
        # A sticky /tmp refuses O_CREAT on a file of another user's, even where it exists.
        return os.open(path, flags)
    with suppress(PermissionError):
        os.fchmod(handle, 0o644)  # whatever our umask: others must be able to open it
    return handle


def _take(handle: int, most_s: float | None) -> None:
    if most_s is None:
        fcntl.flock(handle, fcntl.LOCK_EX)
        return
    end = time.monotonic() + most_s
    while time.monotonic() < end:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.005)
        except OSError:
            return  # a file system without locks
        else:
            return
