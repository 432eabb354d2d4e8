"""Locks between processes and users of a host: one device, one measurement at a time.

Each ends with the process that holds it. They are files in one folder that all users may write to,
so nothing keeps out a malicious user: one who holds such a lock for ever makes all others wait, and
one who puts something unreadable or a link in a lock's place makes them fail.
"""

from __future__ import annotations

import fcntl
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from evaluator.errors import DeviceError
from evaluator.hardware.devices import DeviceInfo, describe

LOCKS = "KERNEL_REFINERY_LOCKS"
"""Where the locks are, for processes whose /tmp is missing, read-only or their own."""
HOLDER = "KERNEL_REFINERY_HOLDER"
"""Whom the processes that a command starts hold locks for: `PID 123, agent.run`."""
_FOLDER = "/tmp"
"""Not TMPDIR: two users, or two jobs of one, have different ones, and time on the same device."""


def device_lock(
    device: str, waits: Callable[[str], None] | None = None
) -> AbstractContextManager[bool]:
    """Hold a device alone; waits until it is free. `device` is `cpu` or `cuda:N`.

    `waits` gets who holds it before a wait for another command begins; stderr says it otherwise.
    """

    def on_stderr(holder: str) -> None:
        print(f"waiting for {device}, held by {holder}", file=sys.stderr, flush=True)

    return host_lock(_file_name(device), waits=waits or on_stderr)


def device_lock_if_free(device: str) -> AbstractContextManager[bool]:
    """Hold a device alone if it is free now; yields whether it is held."""
    return host_lock(_file_name(device), most_s=0.0)


def ncu_lock(device: DeviceInfo) -> AbstractContextManager[bool]:
    """One Nsight Compute at a time profiles on a device: of two some were seen to end with 9.

    Others may be there that wait for a request, or profile on another device.
    """
    return host_lock(f"ncu-{_safe(device.uuid or device.name)}")


def _file_name(device: str) -> str:
    """Of the physical device, whatever CUDA_VISIBLE_DEVICES makes of its index."""
    return "cpu" if device == "cpu" else _safe(describe(device).uuid)


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9-]", "_", name)


def own_holder() -> str:
    main = getattr(sys.modules["__main__"], "__spec__", None)
    name = main.name.removesuffix(".__main__") if main else Path(sys.argv[0]).name
    return os.environ.get(HOLDER) or f"PID {os.getpid()}, {name}"


def lock_folder() -> Path:
    return Path(os.environ.get(LOCKS) or _FOLDER)


@contextmanager
def host_lock(
    name: str, *, most_s: float | None = None, waits: Callable[[str], None] | None = None
) -> Iterator[bool]:
    """Hold what is called `name` alone; waits until it is free. Tells whether it is held.

    With `most_s` it only spares work: a process that has waited for so long, or can't have a lock
    here, goes on without. Raises `DeviceError` where a lock that is needed can't be had.
    """
    handle, held = None, False
    try:
        try:
            handle = _opened(lock_folder() / f"kernel-refinery-{name}.lock")
            held = _take(handle, most_s, waits)
            with suppress(OSError):  # for the eyes of those who wait
                if held:
                    os.ftruncate(handle, 0)
                    os.pwrite(handle, own_holder().encode(), 0)
        except OSError as error:
            if most_s is None:
                raise DeviceError(
                    f"the lock cannot be made ({error}): set {LOCKS} to a folder in which all users"
                    " of this machine may make files, the same for all"
                ) from None
        yield held
    finally:
        if handle is not None:
            os.close(handle)


def _opened(path: Path) -> int:
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        handle = os.open(path, flags | os.O_CREAT, 0o666)
    except PermissionError:
        # A sticky /tmp refuses O_CREAT on a file of another user's, even where it exists.
        handle = os.open(path, flags)  # another user has made it
    with suppress(OSError):
        os.fchmod(handle, 0o666)  # whatever our umask: others must be able to open it,
    with suppress(OSError):
        os.utime(handle)  # and to touch it: /tmp is cleaned of what seems unused for days
    return handle


def _take(handle: int, most_s: float | None, waits: Callable[[str], None] | None) -> bool:
    """Raises `OSError` on a file system without locks."""
    end = time.monotonic() + (most_s or 0.0)
    while not _taken(handle):
        if most_s is None:
            said = os.pread(handle, 100, 0).decode(errors="replace")
            holder = "".join(filter(str.isprintable, said)) or "another process"
            if waits is not None and holder != own_holder():
                waits(holder)
            fcntl.flock(handle, fcntl.LOCK_EX)
            return True
        if time.monotonic() >= end:
            return False
        time.sleep(0.005)
    return True


def _taken(handle: int) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False
