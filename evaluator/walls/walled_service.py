"""Walls around one of our own processes, in which a stranger's problem runs.

`python -m evaluator.walls.walled_service FD FOLDER LENT MEMORY MODULE ARGUMENTS...` becomes that
module behind them. They are a worker's walls, but for the system calls that a judge needs for
workers of its own. Landlock allows no mounts, so these workers have fewer namespaces.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from pathlib import Path
from typing import NoReturn

from evaluator.walls import memory_group
from evaluator.walls.environment import clean_environment, python_module
from evaluator.walls.folders import PACKAGES
from evaluator.walls.layers import confine, enclose
from evaluator.walls.memory_group import MemoryGroup
from evaluator.walls.namespaces import can_fork_apart, fork_apart

_TOOLS = PACKAGES[0].with_name("tools")
_NEEDED = {"mount_namespace", "network_namespace", "own_tmp", "own_proc", "landlock", "seccomp"}
_CPU_SECONDS = 24 * 3600


def main(fd: int, folder: Path, lent: Path, memory: int, module: str, *arguments: str) -> NoReturn:
    """`folder`: all that it may write to, in memory, with a copy of what is `lent` as its cache.
    `memory`: bytes for all of it; 0 on a GPU, where they are not limited. Raises `OSError` where
    one of the walls that are needed can't be had."""
    files = {each.relative_to(lent): each.read_bytes() for each in _files(lent)}
    groups = memory_group.tried() if memory else None
    enclosed = enclose(_TOOLS)
    if "mount_namespace" not in enclosed or not can_fork_apart():
        raise OSError("no namespaces can be made")
    born = fork_apart(stops=True)
    if born.pid:
        init = born.init
        assert init is not None
        for each in (signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(each, lambda number, _: os.kill(init, number))
        group = MemoryGroup(groups, memory) if groups is not None else None
        if group is not None:
            group.add(born.pid)
        _stand_by(fd, born.pid)
        os.kill(init, signal.SIGKILL)
        if group is not None:
            group.close()
        os._exit(0)
    held = confine(
        folder,
        # So that workers in there can be given as much as any other.
        memory_bytes=2 * memory or None,
        cpu_seconds=_CPU_SECONDS,
        enclosed=[*enclosed, "pid_namespace"],
        needed=[_TOOLS],
        writes_proc=True,
        judges=True,
    )
    if lacking := _NEEDED - {*enclosed, *held}:
        raise OSError(f"missing: {', '.join(sorted(lacking))}")
    for name, content in files.items():
        (folder / "cache" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "cache" / name).write_bytes(content)
    packages = folder / "packages"
    packages.mkdir()
    for package in (*PACKAGES, _TOOLS):
        # The folder that they lie in cannot be listed.
        (packages / package.name).symlink_to(package)
    environment = clean_environment(folder)
    environment["KERNEL_REFINERY_CACHE"] = str(folder / "cache")
    environment["KERNEL_REFINERY_LOCKS"] = str(folder)
    environment["PYTHONPATH"] = f"{packages}{os.pathsep}{environment['PYTHONPATH']}"
    # The end of a log that is not behind the walls.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.execve(sys.executable, python_module(module, str(fd), *arguments), environment)


def _files(lent: Path) -> list[Path]:
    return [each for each in lent.rglob("*") if each.is_file()]


def _stand_by(fd: int, child: int) -> None:
    """Until the child ends, or the other end of `fd` is gone. What is stopped would not see it."""
    ends = select.poll()
    ends.register(fd, select.POLLRDHUP)
    ends.register(os.pidfd_open(child), select.POLLIN)
    ends.poll()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    fd, folder, lent, memory, *module = sys.argv[1:]
    main(int(fd), Path(folder), Path(lent), int(memory), *module)
