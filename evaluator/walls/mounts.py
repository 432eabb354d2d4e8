"""What the file system looks like from inside: homes are empty, /tmp and /proc are one's own.

All of it needs a mount namespace of one's own and the right to mount in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from evaluator.walls import folders
from evaluator.walls.kernel import (
    CLONE_NEWNS,
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    mount,
    set_read_only,
    unshare,
)

PRIVATE = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))
"""Everybody may write there: each worker gets empty ones of its own, gone with its last process."""
_PRIVATE_OPTIONS = f"size={2**30},nr_inodes=65536,mode=1777"


def leave_shared_mounts() -> None:
    """A mount namespace of one's own, from which nothing comes back; raises `OSError`."""
    unshare(CLONE_NEWNS)
    mount("none", "/", None, MS_REC | MS_PRIVATE)


def cover(folder: Path, kept: Sequence[Path], options: str, *, writable: bool) -> None:
    """Put an empty file system over a folder, and what is `kept` of it back in its place."""
    links = {path: path.readlink() for path in kept if path.is_symlink()}
    handles = {path: os.open(path, os.O_PATH) for path in kept if path not in links}
    flags = MS_NOSUID | MS_NODEV
    try:
        mount("tmpfs", str(folder), "tmpfs", flags, options)
        for path, handle in handles.items():
            _make(path)
            mount(f"/proc/self/fd/{handle}", str(path), None, MS_BIND | MS_REC)
    finally:
        for handle in handles.values():
            os.close(handle)
    for path, target in links.items():
        _make(path.parent)
        path.symlink_to(target)
    if not writable:
        mount("tmpfs", str(folder), None, flags | MS_REMOUNT | MS_RDONLY)


def _make(folder: Path) -> None:
    """With its parents: whatever our umask, another user must come through."""
    before = os.umask(0o022)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    finally:
        os.umask(before)


def hide_homes(*visible: Path) -> None:
    """Homes look empty but for the interpreter and `visible`, /run but for what drivers need."""
    needed = [*folders.interpreter_folders(), *folders.named_folders(), *visible]
    for home in folders.homes():
        inside = [path for path in needed if path.is_relative_to(home)]
        if home not in inside:
            cover(home, inside, "mode=755", writable=False)
    run = Path("/run")
    if run.is_dir() and not run.is_symlink():
        services = [Path(name) for name in folders.RUNNING if os.path.lexists(name)]
        inside = [path for path in needed if path.is_relative_to(run)]
        cover(run, services + inside, "mode=755", writable=False)


def hide(paths: Iterable[Path]) -> None:
    """Files look like /dev/null, and folders empty; raises `OSError`."""
    for path in paths:
        if path.is_dir():
            cover(path, [], "mode=755", writable=False)
        else:
            mount("/dev/null", str(path), None, MS_BIND)


def make_read_only(scratch: Path) -> None:
    """No mode, time or owner of a file can be changed outside `scratch` and /proc.

    Landlock leaves these three to the owner of a file. The executable that runs already is reached
    through the mount of its start, and stays as it is. Raises `OSError`.
    """
    mount(str(scratch), str(scratch), None, MS_BIND)
    writable = [
        name for name in (str(scratch), "/proc") if not os.statvfs(name).f_flag & os.ST_RDONLY
    ]
    set_read_only("/", True, recursive=True)
    for name in writable:
        set_read_only(name, False)


def own_temporary_folders(scratch: Path, *, outlives: bool, needed: Sequence[Path] = ()) -> None:
    """Empty /tmp, /var/tmp and /dev/shm of limited size, and `scratch` with them.

    What is written to `scratch` vanishes with the last process, unless it `outlives` them. What
    else is `needed` of them stays where it is.
    """
    kept = [*folders.interpreter_folders(), *folders.named_folders(), *needed]
    kept += [scratch] * outlives
    for folder in PRIVATE:
        if not folder.is_dir():
            continue
        inside = [path for path in kept if path.is_relative_to(folder.resolve())]
        cover(folder, inside, _PRIVATE_OPTIONS, writable=True)
    if not outlives:
        _make(scratch)
        if not any(scratch.is_relative_to(folder.resolve()) for folder in PRIVATE):
            mount("tmpfs", str(scratch), "tmpfs", MS_NOSUID | MS_NODEV, _PRIVATE_OPTIONS)


def own_proc() -> None:
    """A /proc that shows the processes of one's own PID namespace alone; raises `OSError`."""
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
