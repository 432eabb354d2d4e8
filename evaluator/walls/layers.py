"""All walls in their order, and the names under which they are reported.

Two steps. `enclose` is for the process that will fork workers (or become one): namespaces, homes.
`confine` is for the worker itself, after the fork and before any candidate's code. Each returns
the names of the layers that it could put up; what is missing is reported, never assumed.
`probe.py` runs against each of them.
"""

from __future__ import annotations

import contextlib
import os
import resource
import tempfile
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from evaluator.walls import (
    folders,
    landlock,
    limits,
    mounts,
    namespaces,
    privileges,
    seccomp,
)
from evaluator.walls.bait import Bait
from evaluator.walls.environment import clean_environment
from evaluator.walls.kernel import PR_SET_CHILD_SUBREAPER, PR_SET_KEEPCAPS, prctl
from evaluator.walls.probe import Probe

Reached = Callable[[str], None]
_FILE_BYTES = 2**30
"""Of the largest file that may be written."""
_LENT_BYTES = 2**34


def enclose(*needed: Path, hidden: Sequence[Path] = ()) -> list[str]:
    """The walls that every child inherits; `needed` stays visible, even in a home, and files that
    are `hidden` look like /dev/null.

    Needs a process with a single thread.
    """
    layers: list[str] = []
    if os.geteuid() != 0:
        if not namespaces.become_master_of_own_user_namespace():
            return layers
        layers.append("user_namespace")
    with contextlib.suppress(OSError):
        mounts.leave_shared_mounts()
        layers.append("mount_namespace")
        secret = folders.withheld(folders.readable())
        mounts.hide_homes(*needed)
        mounts.hide(secret)
        layers.append("homes_hidden")
        mounts.hide(hidden)
    return layers + namespaces.own_namespaces()


def confine(
    scratch: Path,
    *,
    memory_bytes: int | None,
    cpu_seconds: int,
    enclosed: Collection[str] = (),
    keep_scratch: bool = False,
    needed: Sequence[Path] = (),
    writes_proc: bool = False,
    watches: bool = False,
    judges: bool = False,
    reached: Reached = lambda layer: None,
) -> list[str]:
    """Give up everything that a candidate must not have; the names of the layers that held.

    Args:
        memory_bytes: limits the address space that may be taken from now on; None on a GPU, where
            that would break CUDA's reservations.
        enclosed: what `enclose` returned, and `pid_namespace` for a process in one of its own.
        keep_scratch: what is written to `scratch` outlives this process.
        needed: what else may be read.
        writes_proc: what will run names threads that aren't its own.
        watches: root's right to watch performance stays, if possible and seccomp is active.
        judges: it will put up walls around workers of its own, as far as those around it allow.
        reached: called after each layer.

    Raises `OSError` if the uid can't be dropped although we are root.
    """
    held: list[str] = []

    def up(*layers: str) -> None:
        held.extend(layers)
        for layer in layers:
            reached(layer)

    os.setsid()
    if "pid_namespace" not in enclosed:
        # Orphans come to this process, so that they are seen.
        prctl(PR_SET_CHILD_SUBREAPER, 1)
    limits.prefer_oom_kill()
    # The outer pid, until a /proc of one's own is there.
    number = int(Path("/proc/self").readlink().name)
    alone = len(list(Path("/proc/self/task").iterdir())) == 1
    writable = [scratch]
    if "mount_namespace" in enclosed and alone:
        with contextlib.suppress(OSError):
            mounts.leave_shared_mounts()
            with contextlib.suppress(OSError):
                mounts.make_read_only(scratch)
                up("read_only")
            mounts.own_temporary_folders(scratch, outlives=keep_scratch, needed=needed)
            writable += mounts.PRIVATE
            up("own_tmp")
        if "pid_namespace" in enclosed:
            with contextlib.suppress(OSError):
                mounts.own_proc()
                up("own_proc")
    readable, listed = [*folders.readable(), *needed], list[Path]()
    if "homes_hidden" not in enclosed and (secret := folders.withheld(readable)):
        listed = readable
        readable = [path for folder in listed for path in folders.without(folder, secret)]
    own_uid = ""
    # The process keeps its rights across `become_nobody`, since one of them is wanted later.
    watches = watches and _done(lambda: prctl(PR_SET_KEEPCAPS, 1))
    if os.geteuid() == 0:
        own_uid = privileges.become_nobody(number, scratch)
        up(own_uid)
    watches = watches and _done(privileges.keep_watching)
    if not watches:
        privileges.drop_capabilities()
        up("no_capabilities")
    privileges.gain_nothing_by_exec()
    up("no_new_privs")
    privileges.die_with_parent()
    up("dies_with_parent")
    limits.limit(
        memory_bytes=None if memory_bytes is None else limits.mapped_bytes() + memory_bytes,
        cpu_seconds=cpu_seconds,
        # What a judge lends to its workers are files in memory.
        file_bytes=_LENT_BYTES if judges else _FILE_BYTES,
        processes=limits.most_processes(own_uid=own_uid == "own_uid"),
    )
    if judges:
        # So many and some more may be under way in messages, which Linux counts by user.
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    up("rlimits", *(["memory_limit"] if memory_bytes is not None else []))
    os.chdir(scratch)
    environment = clean_environment(scratch)
    os.environ.clear()
    os.environ.update(environment)
    # Some imports, such as dill's, have asked for the temporary folder already.
    tempfile.tempdir = None
    up("clean_environment")
    threads = Path("/proc") if writes_proc else Path("/proc/self/task")
    with contextlib.suppress(OSError):
        # The driver of a GPU names its threads there, and gives up where it can't. Landlock's rule
        # is good for the inode, which lives as long as this descriptor.
        os.open(threads, os.O_PATH | os.O_CLOEXEC)
        named = landlock.restrict(readable, [*writable, threads], listed=listed)
        # It binds this thread and its children: others that run already stay free.
        up(*(named if alone else []))
    with contextlib.suppress(OSError):
        # On a GPU outputs leave through device memory, and no process is stopped.
        stopped = memory_bytes is not None
        seccomp.install(all_threads=not alone, stays_stopped=stopped, judges=judges)
        up("seccomp")
    if watches and "seccomp" in held:
        up("only_cap_perfmon")
    elif watches:
        privileges.drop_capabilities()
        up("no_capabilities")
    return held


def _done(step: Callable[[], object]) -> bool:
    with contextlib.suppress(OSError):
        step()
        return True
    return False


def run_against(
    bait: Bait,
    folder: int,
    scratch: Path,
    *,
    memory_bytes: int | None,
    cpu_seconds: int,
    enclosed: Collection[str],
) -> tuple[str, ...]:
    """Confine this process and attack each wall as it goes up; the layers that held.

    `folder`: a descriptor of the bait's folder. This process is good for nothing else afterwards.
    """
    probe = Probe(bait, folder, scratch, memory_bytes)
    for layer in enclosed:
        probe.reached(layer)
    confine(
        scratch,
        memory_bytes=memory_bytes,
        cpu_seconds=cpu_seconds,
        enclosed=enclosed,
        reached=probe.reached,
    )
    return probe.finish()
