"""Namespaces: nobody else's network, IPC, host name and mounts; and a PID namespace a worker."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from evaluator.walls.kernel import (
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    CLONE_NEWUTS,
    PR_SET_PDEATHSIG,
    prctl,
    setns,
    unshare,
)

NAMESPACES = {
    "network_namespace": CLONE_NEWNET,
    "ipc_namespace": CLONE_NEWIPC,
    "uts_namespace": CLONE_NEWUTS,
}
"""Those that a process shares with all that it forks, by the name of their layer."""


def own_namespaces() -> list[str]:
    """Leave the shared namespaces; the names of those that could be left."""
    held = []
    for name, flag in NAMESPACES.items():
        with contextlib.suppress(OSError):
            unshare(flag)
            held.append(name)
    return held


def become_master_of_own_user_namespace() -> bool:
    """The rights of root over namespaces of one's own, for somebody who isn't root.

    False where the system forbids it. Needs a process with a single thread.
    """
    uid, gid = os.geteuid(), os.getegid()
    try:
        # Asked for together: some systems allow the one and then nothing inside of it.
        child = os.fork()
        if child == 0:
            _leave_after(CLONE_NEWUSER | CLONE_NEWNS)
        if os.waitpid(child, 0)[1]:
            return False
        unshare(CLONE_NEWUSER)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    except OSError:
        return False
    return True


def _leave_after(flags: int) -> NoReturn:
    try:
        unshare(flags)
    except OSError:
        os._exit(1)
    os._exit(0)


@dataclass(frozen=True)
class Nursery:
    """Puts each child that is forked in `born_apart` into a PID namespace of its own."""

    home: int
    """The namespace of the process that forks, as a descriptor."""

    @classmethod
    def open(cls) -> Nursery | None:
        """None where the system forbids PID namespaces."""
        home = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        try:
            unshare(CLONE_NEWPID)
            setns(home, CLONE_NEWPID)
        except OSError:
            os.close(home)
            return None
        return cls(home)

    @contextlib.contextmanager
    def born_apart(self) -> Iterator[int]:
        """Children forked inside share a new PID namespace; yields the pid of its init.

        When init is killed, all that is left in the namespace dies with it. Init and the other
        children are the caller's to reap, init last. Raises `OSError`.
        """
        unshare(CLONE_NEWPID)
        try:
            init = os.fork()
            if init == 0:
                _be_init()
            yield init
        finally:
            setns(self.home, CLONE_NEWPID)


def _be_init() -> NoReturn:
    """Hold the namespace open and let orphans vanish."""
    try:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        os.closerange(0, os.sysconf("SC_OPEN_MAX"))
        while True:
            signal.pause()
    finally:
        os._exit(1)
