"""Namespaces of network, IPC, host name and users, and for each worker its own of PIDs and IPC."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from evaluator.walls import mounts
from evaluator.walls.kernel import (
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    CLONE_NEWUTS,
    PR_SET_CHILD_SUBREAPER,
    PR_SET_PDEATHSIG,
    prctl,
    unshare,
)

NAMESPACES = {
    "network_namespace": CLONE_NEWNET,
    "ipc_namespace": CLONE_NEWIPC,
    "uts_namespace": CLONE_NEWUTS,
}
"""Those that a process shares with all that it forks, by the name of their layer."""


def own_namespaces() -> list[str]:
    held = []
    for name, flag in NAMESPACES.items():
        with contextlib.suppress(OSError):
            unshare(flag)
            held.append(name)
    return held


def become_master_of_own_user_namespace() -> bool:
    """The rights of root over its own namespaces, for a process that isn't root's.

    False where the system forbids it. Needs a process with a single thread.
    """
    uid, gid = os.geteuid(), os.getegid()
    try:
        # Asked for together: some systems allow the one and then nothing inside of it.
        child = os.fork()
        if child == 0:
            _leave_after(lambda: unshare(CLONE_NEWUSER | CLONE_NEWNS))
        if os.waitpid(child, 0)[1]:
            return False
        unshare(CLONE_NEWUSER)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    except OSError:
        return False
    return True


def _leave_after(attempt: Callable[[], None]) -> NoReturn:
    try:
        attempt()
    except OSError:
        os._exit(1)
    os._exit(0)


def can_fork_apart(*, with_proc: bool = True) -> bool:
    """Whether this process can put children into PID namespaces of their own, with a /proc of it.

    Where /proc goes on to show the outer numbers, a process finds no thread of its own there, and
    CUDA's driver gives up.
    """
    try:
        born = fork_apart()
        if born.pid == 0:
            _leave_after(own_proc if with_proc else lambda: None)
        assert born.init is not None
        status = os.waitpid(born.pid, 0)[1]
        os.kill(born.init, signal.SIGKILL)
        os.waitpid(born.init, 0)
    except OSError:
        return False
    return status == 0


def own_proc() -> None:
    """A mount namespace of one's own in which /proc shows one's own PID namespace alone."""
    mounts.leave_shared_mounts()
    mounts.own_proc()


@dataclass(frozen=True)
class Born:
    pid: int
    """As `os.fork` returns it: 0 in the child itself."""
    init: int | None
    """The first process of its PID namespace, a child of this process too, to be reaped last.
    When it is killed, everything in there dies. None: it has no namespace of its own."""


def fork_apart(*, stops: bool = False) -> Born:
    """Fork into a new PID namespace, and an IPC one that ends with it; raises `OSError`.

    An intermediate process starts the namespace, has two children and exits. They become this
    process's own, because it is the reaper of orphans below it. So their pids are known here, and
    this process stays where it is, to which a process without root could not return.

    `stops`: at SIGUSR1 the namespace's first process stops all others in one step, which no fork
    escapes, and lets them go on at SIGUSR2.
    """
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    handles = [*os.pipe()]
    try:
        handles += os.pipe()
        handles.append(os.pidfd_open(os.getpid()))
        intermediate = os.fork()
    except OSError:
        for handle in handles:
            os.close(handle)
        raise
    receives, sends, gate, keeps_shut, owner = handles
    if intermediate == 0:
        os.close(receives)
        os.close(keeps_shut)
        with contextlib.suppress(OSError):
            # System V segments outlive their processes, and count towards no process's limit.
            unshare(CLONE_NEWPID | CLONE_NEWIPC)
            init = os.fork()
            if init == 0:
                if stops:
                    signal.signal(signal.SIGUSR1, lambda *_: os.kill(-1, signal.SIGSTOP))
                    signal.signal(signal.SIGUSR2, lambda *_: os.kill(-1, signal.SIGCONT))
                _be_init(gate, owner)
            try:
                worker = os.fork()
            except OSError:
                os.kill(init, signal.SIGKILL)
                os.waitpid(init, 0)
                raise
            if worker == 0:
                os.close(sends)
                os.close(owner)
                # Wait until the intermediate process is gone: a worker that asks to die with its
                # parent must not mean that one.
                os.read(gate, 1)
                os.close(gate)
                return Born(0, None)
            os.write(sends, f"{worker} {init}".encode())
        os._exit(0)
    os.close(sends)
    pids = os.read(receives, 64).split()
    os.waitpid(intermediate, 0)
    for handle in (receives, gate, keeps_shut, owner):
        os.close(handle)
    if not pids:
        raise OSError("no PID namespace could be made")
    return Born(*map(int, pids))


def _be_init(gate: int, owner: int) -> NoReturn:
    """Hold the namespace open and let orphans vanish, until the owner of it ends."""
    try:
        os.read(gate, 1)
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        # One by one: os.closerange may try every number there is, and that can be 10^9.
        for entry in list(Path("/proc/self/fd").iterdir()):
            if int(entry.name) != owner:
                with contextlib.suppress(OSError):
                    os.close(int(entry.name))
        ended = select.poll()
        ended.register(owner, select.POLLIN)
        ended.poll()  # it may have ended too early for the signal
    finally:
        os._exit(1)
