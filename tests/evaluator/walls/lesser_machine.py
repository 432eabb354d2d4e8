"""Runs a command as on a machine that allows less: `python lesser_machine.py KIND COMMAND...`.

`user`: somebody who isn't root. `container`: root with the capabilities that a container has by
default. `locked`: neither root nor new user namespaces. Needs root.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from evaluator.walls import mounts
from evaluator.walls.kernel import CLONE_NEWUSER, prctl, unshare

_CAPBSET_DROP = 24
_USER = 1000
_KEPT_IN_CONTAINERS = (0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31)
_HIGHEST_CAPABILITY = 40


def main(kind: str, command: list[str]) -> None:
    # The interpreter may lie in root's home, which others can't enter.
    mounts.leave_shared_mounts()
    mounts.hide_homes(Path("/nowhere"))
    if kind == "container":
        for capability in range(_HIGHEST_CAPABILITY + 1):
            if capability not in _KEPT_IN_CONTAINERS:
                prctl(_CAPBSET_DROP, capability)
    else:
        if kind == "locked":
            _enter_user_namespace()
            # Counts for this user namespace, not for the machine.
            Path("/proc/sys/user/max_user_namespaces").write_text("0")
        os.setgroups([])
        os.setresgid(_USER, _USER, _USER)
        os.setresuid(_USER, _USER, _USER)
    os.execv(command[0], command)


def _enter_user_namespace() -> None:
    """With the ids that a container has; somebody outside has to say which."""
    waits, tells = os.pipe()
    inside = os.getpid()
    outside = os.fork()
    if outside == 0:
        os.close(tells)
        os.read(waits, 1)
        for name in ("uid_map", "gid_map"):
            Path(f"/proc/{inside}/{name}").write_text("0 0 65536")
        os._exit(0)
    os.close(waits)
    unshare(CLONE_NEWUSER)
    os.close(tells)
    assert os.waitpid(outside, 0)[1] == 0


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
