"""The few calls to the Linux kernel for which Python has no function of its own."""

from __future__ import annotations

import ctypes
import os

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
CLONE_ANYTHING_NEW = 0x7E020000
"""All of these together, and control groups."""

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 32, 4096, 16384, 1 << 18

_MOUNT_SETATTR = 442
"""The same on every architecture."""
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_MOUNT_ATTR_RDONLY = 1

PR_SET_PDEATHSIG, PR_GET_PDEATHSIG = 1, 2
PR_SET_KEEPCAPS = 8
PR_SET_SECCOMP = 22
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS = 38, 39
PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 47, 2

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def unshare(flags: int) -> None:
    """Leave the shared namespaces that `flags` names; raises `OSError`."""
    checked(libc.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    checked(
        libc.mount(
            source.encode(),
            target.encode(),
            kind.encode() if kind else None,
            ctypes.c_ulong(flags),
            options.encode() or None,
        ),
        f"mount {target}",
    )


def set_read_only(folder: str, read_only: bool, *, recursive: bool = False) -> None:
    """Forbid changes through the mount at `folder`, or allow them again.

    With `recursive`, also through all mounts below. Needs Linux 5.12; raises `OSError`.
    """
    to_set, to_clear = (_MOUNT_ATTR_RDONLY, 0) if read_only else (0, _MOUNT_ATTR_RDONLY)
    attributes = (ctypes.c_uint64 * 4)(to_set, to_clear, 0, 0)
    system_call(
        _MOUNT_SETATTR,
        _AT_FDCWD,
        folder.encode(),
        _AT_RECURSIVE if recursive else 0,
        ctypes.byref(attributes),
        ctypes.sizeof(attributes),
    )


def prctl(option: int, *arguments: int) -> int:
    """prctl(2) with whole numbers; raises `OSError`."""
    padded = [ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0, 0)[:4]]
    return checked(libc.prctl(option, *padded), "prctl")


def system_call(number: int, *arguments: object) -> int:
    """Any system call; whole numbers are passed as such, the rest as ctypes does."""
    passed = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return checked(int(libc.syscall(ctypes.c_long(number), *passed)), f"system call {number}")
