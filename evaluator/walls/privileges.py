"""Who a worker is: a user of its own without any special right."""

from __future__ import annotations

import ctypes
import os
import signal
from pathlib import Path

from evaluator.walls.kernel import (
    PR_CAP_AMBIENT,
    PR_CAP_AMBIENT_RAISE,
    PR_SET_NO_NEW_PRIVS,
    PR_SET_PDEATHSIG,
    checked,
    libc,
    prctl,
)

NOBODY = 65534
_FIRST_UID = 0x60000000
"""Far above what any system hands out to people, services and containers."""
_VERSION_3 = 0x20080522
_CAP_PERFMON = 38
_STATUS = Path("/proc/self/status")
_USERS = Path("/proc/self/uid_map")


def become_nobody(number: int, folder: Path) -> str:
    """From root to a user whom nobody else is, who owns `folder`; the name of the layer.

    `number` must be unique among living processes. Where the system knows too few users (some
    containers) it is nobody, of whom there may be several. Raises `OSError`.
    """
    uid = _FIRST_UID + number
    try:
        os.chown(folder, uid, uid)
    except OSError:
        uid = NOBODY
        os.chown(folder, uid, uid)
    folder.chmod(0o700)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    return "uid_nobody" if uid == NOBODY else "own_uid"


def may_watch() -> bool:
    """Whether this is the machine's root with CAP_PERFMON, to watch performance and nothing else: a
    container's may lack it, and a user namespace's has it there alone."""
    if os.geteuid() != 0 or _in_user_namespace():
        return False
    said = _STATUS.read_text().partition("\nCapPrm:")[2].split()
    return bool(int(said[0], 16) >> _CAP_PERFMON & 1)


def _in_user_namespace() -> bool:
    try:
        users = _USERS.read_text().split()
    except FileNotFoundError:
        return False  # a kernel that has none
    return users != ["0", "0", str(2**32 - 1)]


def drop_capabilities() -> None:
    """No right of root's is left, in no user namespace; raises `OSError`."""
    _hold(0)


def keep_watching() -> None:
    """Of root's rights CAP_PERFMON alone is left, also in programs that this process becomes.

    Raises `OSError` where that can't be. Other processes can be watched with it too: only behind a
    filter that refuses such calls.
    """
    _hold(1 << _CAP_PERFMON)
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, _CAP_PERFMON)


def _hold(bits: int) -> None:
    header = (ctypes.c_uint32 * 2)(_VERSION_3, 0)
    halves = (bits & 0xFFFFFFFF, bits >> 32)
    # Of each half what is in effect, permitted and inherited.
    sets = (ctypes.c_uint32 * 6)(*(half for half in halves for _ in range(3)))
    checked(libc.capset(header, sets), "capset")


def gain_nothing_by_exec() -> None:
    """setuid programs and file capabilities are without effect from here on."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def die_with_parent() -> None:
    """SIGKILL when the parent ends. Comes after every change of uid, which clears it."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
