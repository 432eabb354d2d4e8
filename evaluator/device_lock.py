"""One device, one measurement at a time, across processes and users of a host."""

from __future__ import annotations

import fcntl
import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from evaluator.devices import describe

LOCKS = "KERNEL_REFINERY_LOCKS"
"""Set for a process that has a folder of its own for temporary files: where the locks are."""
_MOST_TURNS_S = 2.0
"""Several times what a context takes on each GPU of a host."""


def lock_folder() -> Path:
    """Where all processes of ours on this host find the same locks."""
    return Path(os.environ.get(LOCKS) or tempfile.gettempdir())


def _identity(device: str) -> str:
    """What names the physical device, whatever CUDA_VISIBLE_DEVICES makes of its index."""
    if device == "cpu":
        return "cpu"
    return describe(device).uuid


@contextmanager
def device_lock(device: str) -> Iterator[None]:
    """Hold a device alone; waits for whoever has it. `device` is `cpu` or `cuda:N`."""
    with _held(re.sub(r"[^A-Za-z0-9-]", "_", _identity(device))):
        yield


@contextmanager
def ncu_lock() -> Iterator[None]:
    """One Nsight Compute on this host profiles at a time: of two some were seen to end with 9.

    Others may be there that wait for a request.
    """
    with _held("ncu"):
        yield


@contextmanager
def context_turn() -> Iterator[None]:
    """One judge on this host at a time makes a context ahead.

    The driver makes them one after the other, for all GPUs. Judges that ask at the same time wait
    for each other each time anew; by turns, one makes its context while the others time. Whoever
    has waited for long goes ahead all the same.
    """
    with _held("context", most_s=_MOST_TURNS_S):
        yield


@contextmanager
def _held(name: str, *, most_s: float | None = None) -> Iterator[None]:
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
