"""What runs between the builder and a compiler: it puts up the walls and becomes the compiler.

`python -m evaluator.builder.enclosed ORDER` (JSON, made by `enclosure.py`). With a trial in the
order there is no compiler: the walls are attacked, and the names of those that held are printed.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from evaluator.walls import folders, landlock, limits, mounts, namespaces, privileges, seccomp
from evaluator.walls.bait import OPEN_TO_ALL, Bait
from evaluator.walls.kernel import (
    CLONE_NEWPID,
    MS_BIND,
    MS_NODEV,
    MS_NOSUID,
    MS_REC,
    mount,
    unshare,
)
from evaluator.walls.probe import JUDGE_OUT_OF_REACH, Probe, works

_HARMLESS = ("/proc/cpuinfo", "/proc/meminfo", "/proc/stat")


def main(order: dict[str, Any]) -> None:
    """Never returns, but for a trial."""
    limits.prefer_oom_kill()  # the user nobody could not
    folder = Path(order["folder"])
    layers = ["clean environment"]
    if order["namespaces"]:
        _own_namespaces(folder, order["visible"])
        layers.append("namespaces")
    os.chdir(folder)
    # Without its own file system, the user nobody could not reach the build folder.
    if os.geteuid() == 0 and order["namespaces"]:
        os.setgroups([])
        os.setresgid(*[privileges.NOBODY] * 3)
        os.setresuid(*[privileges.NOBODY] * 3)
    privileges.drop_capabilities()
    privileges.gain_nothing_by_exec()
    privileges.die_with_parent()
    limits.limit(
        memory_bytes=order["memory_bytes"],
        cpu_seconds=order["cpu_seconds"],
        file_bytes=order["file_bytes"],
        processes=order["processes"],
    )
    layers.append("resource limits")
    readable = [*order["visible"], *(["/proc"] if order["namespaces"] else _HARMLESS)]
    with contextlib.suppress(OSError):
        secret = [] if order["namespaces"] else folders.withheld(map(Path, readable))
        shown = [path for name in readable for path in folders.without(Path(name), secret)]
        landlock.restrict(shown, [folder], listed=map(Path, readable) if secret else ())
        layers.append("landlock")
    with contextlib.suppress(OSError):
        seccomp.install()
        layers.append("seccomp")
    if order["trial"] is None:
        os.execvpe(order["command"][0], order["command"], order["environment"])
    print(json.dumps(_tried(layers, folder, order["memory_bytes"], **order["trial"])))


def _own_namespaces(folder: Path, visible: list[str]) -> None:
    if os.geteuid() != 0 and not namespaces.become_master_of_own_user_namespace():
        raise OSError("no user namespace can be made")
    mounts.leave_shared_mounts()
    if "network_namespace" not in namespaces.own_namespaces():
        raise OSError("no network namespace can be made")
    unshare(CLONE_NEWPID)
    child = os.fork()
    if child:
        # The session is killed as a whole: nothing is left when this one is, nor when the builder
        # ends without a word.
        privileges.die_with_parent()
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)
    root = folder / "root"
    root.mkdir(exist_ok=True)
    mount("tmpfs", str(root), "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=755")
    for name in (*visible, str(folder)):
        _show(Path(name), Path(f"{root}{name}"))
    mounts.hide(Path(f"{root}{path}") for path in folders.withheld(map(Path, visible)))
    (root / "tmp").mkdir(exist_ok=True)
    (root / "proc").mkdir()
    with contextlib.suppress(OSError):
        mount("proc", str(root / "proc"), "proc", MS_NOSUID | MS_NODEV)
    os.chroot(root)


def _show(path: Path, inside: Path) -> None:
    if path.is_symlink():
        inside.parent.mkdir(parents=True, exist_ok=True)
        inside.symlink_to(path.readlink())
        return
    if path.is_dir():
        inside.mkdir(parents=True, exist_ok=True)
    else:
        inside.parent.mkdir(parents=True, exist_ok=True)
        inside.touch()
    mount(str(path), str(inside), None, MS_BIND | MS_REC)


def _tried(
    layers: list[str],
    scratch: Path,
    memory_bytes: int,
    *,
    bait: dict[str, Any],
    folder: int,
    path: str,
) -> list[str]:
    (scratch / "written").touch()
    probe = Probe(Bait(**bait), folder, scratch, memory_bytes)
    attacked = {"seccomp": "seccomp", "landlock": "landlock", "resource limits": "rlimits"}
    held = [name for name in layers if name not in attacked or not probe.breaks(attacked[name])]
    outside = Path(path)
    reads = works((outside / OPEN_TO_ALL).read_bytes)
    if not (reads or works((outside / "written").touch)):
        held.append("own file system")
    if not probe.breaks("network"):
        held.append("no network")
    if not probe.breaks(JUDGE_OUT_OF_REACH):
        held.append(JUDGE_OUT_OF_REACH)
    return held


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
