"""The walls around a compiler that reads a candidate's sources.

`#include "/home/user/.ssh/id"` would quote that file in an error message, and `.incbin`, `#embed`
and `__has_include` read files without a trace in the dependency file. So the compiler runs, where
the system lets us, in namespaces of its own whose file system holds nothing but toolchain,
PyTorch's and Python's headers and the build folder; no network; as nobody when we are root. Where
namespaces are forbidden, only the check of the dependency file is left (toolchain.py), which does
not see `.incbin`, `#embed` and `__has_include`: `layers` says which of the two it is.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

NOBODY = 65534
_MEMORY_BYTES = 16 * 2**30
_FILE_BYTES = 2**30

# $1 new root, $2 build folder, $3 what runs the command inside, then the folders to show, then
# `--`, then the command. Everything is quoted; no text of the candidate's is in here.
_SCRIPT = r"""
set -e
root=$1; build=$2; inside=$3; shift 3
mount -t tmpfs -o size=1m,mode=755 none "$root"
while [ "$1" != -- ]; do
  if [ -L "$1" ]; then
    mkdir -p "$root${1%/*}"; ln -s "$(readlink "$1")" "$root$1"
  elif [ -d "$1" ]; then
    mkdir -p "$root$1"; mount --rbind "$1" "$root$1"
  elif [ -e "$1" ]; then
    mkdir -p "$root${1%/*}"; : > "$root$1"; mount --bind "$1" "$root$1"
  fi
  shift
done
shift
mkdir -p "$root$build" "$root/tmp" "$root/proc"
mount --bind "$build" "$root$build"
mount -t proc proc "$root/proc" 2>/dev/null || true
exec chroot "$root" $inside /bin/sh -c "$LIMITED" sh "$build" "$@"
"""
_LIMITED = (
    'cd "$1" && shift && ulimit -c 0 && ulimit -v {memory} && ulimit -f {file} && '
    'ulimit -t {cpu} && exec "$@"'
)
_SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/alternatives",
    "/etc/ld.so.cache", "/dev/null", "/dev/zero", "/dev/urandom",
)  # fmt: skip


@dataclass(frozen=True)
class Finished:
    """How a command ended. `code` is None when it was killed for taking too long."""

    code: int | None
    output: str


class Enclosure:
    """Runs compilers behind as many walls as this machine allows."""

    def __init__(self, visible: Sequence[Path], environment: Mapping[str, str]) -> None:
        """`visible`: folders to show besides the system's; `environment`: all that is passed on."""
        self._visible = tuple(str(path) for path in visible)
        self._environment = dict(environment)
        self._mode: tuple[str, ...] | None = None
        self._inside = ""

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the walls that stand; empty before `prepare`."""
        limits = ("compiler: clean environment", "compiler: resource limits")
        if not self._mode:
            return limits
        return (*limits, "compiler: own file system", "compiler: no network")

    def prepare(self, scratch: Path) -> None:
        """Finds out, once, which namespaces can be had. `scratch` is an empty folder of ours."""
        unshare = shutil.which("unshare")
        self._mode = ()
        if unshare is None or shutil.which("mount") is None or shutil.which("chroot") is None:
            return
        spaces = (unshare, "--mount", "--net", "--ipc", "--pid", "--fork", "--kill-child")
        attempts: list[tuple[tuple[str, ...], str]] = []
        if os.geteuid() == 0:
            identity = f"--reuid={NOBODY} --regid={NOBODY} --clear-groups"
            attempts.append((spaces, f"setpriv {identity} --no-new-privs"))
        attempts.append(((*spaces, "--user", "--map-root-user"), "setpriv --no-new-privs"))
        for mode, inside in attempts:
            self._mode, self._inside = mode, inside
            if self.run(["/bin/sh", "-c", ": > written"], scratch, timeout_s=20).code == 0:
                return
        self._mode, self._inside = (), ""

    def run(self, command: Sequence[str], folder: Path, timeout_s: float) -> Finished:
        """Runs `command` in `folder`, stdout and stderr together, killed whole after the time.

        `folder` is the only place that it can write to; `folder/tmp` is its HOME and TMPDIR.
        """
        assert self._mode is not None, "prepare() comes first"
        home = folder / "tmp"
        home.mkdir(exist_ok=True)
        limited = _LIMITED.format(
            memory=_MEMORY_BYTES // 1024, file=_FILE_BYTES // 512, cpu=int(timeout_s) + 10
        )
        if self._mode:
            root = folder / "root"
            root.mkdir(exist_ok=True)
            if "--user" not in self._mode:
                for path in (folder, home):
                    os.chown(path, NOBODY, NOBODY)
            wrapped = [
                *self._mode,
                *("/bin/sh", "-c", _SCRIPT, "sh", str(root), str(folder), self._inside),
                *(path for path in _SYSTEM if Path(path).exists()),
                *self._visible,
                *("--", *command),
            ]
        else:
            wrapped = ["/bin/sh", "-c", limited, "sh", str(folder), *command]
        environment = self._environment | {
            # Tools that build the walls; the environment's own come first.
            "PATH": f"{self._environment.get('PATH', '/usr/bin:/bin')}:/usr/sbin:/sbin",
            "HOME": str(home),
            "TMPDIR": str(home),
            "LIMITED": limited,
        }
        process = subprocess.Popen(
            wrapped,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            return Finished(None, output.decode(errors="replace"))
        return Finished(process.returncode, output.decode(errors="replace"))
