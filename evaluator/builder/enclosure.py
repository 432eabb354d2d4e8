"""The walls around a compiler that reads a candidate's sources.

`#include "/home/user/.ssh/id"` would quote that file in an error message, and `.incbin`, `#embed`
and `__has_include` read files without a trace in the dependency file. So the compiler runs behind
the walls that a worker has (`enclosed.py` puts them up): namespaces of its own with a file system
that holds nothing but toolchain, PyTorch's and Python's headers and the build folder, and for root
the user nobody; Landlock, for the same files, which holds where namespaces are forbidden; no
network; a filter of system calls. `layers` says which of them were tried and held. Where neither
namespaces nor Landlock are to be had, only the check of the dependency file is left (toolchain.py).
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evaluator.builder.work_folder import work_folder
from evaluator.walls.bait import bait
from evaluator.walls.demands import COMPILER
from evaluator.walls.environment import python_path
from evaluator.walls.limits import SHARED_PROCESSES
from evaluator.walls.privileges import NOBODY

_MEMORY_BYTES = 16 * 2**30
_FILE_BYTES = 2**30
_OUTPUT_BYTES = 2**20
_ORDER_BYTES = 2**17 - 1
"""The longest argument that Linux passes on."""
_TRIAL_TIMEOUT_S = 20.0
_DEATH_TIMEOUT_S = 10.0
_SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/alternatives",
    "/etc/ld.so.cache", "/dev/null", "/dev/zero", "/dev/urandom",
)  # fmt: skip


@dataclass(frozen=True)
class Finished:
    """How a command ended. `code` is None when it was killed for taking too long."""

    code: int | None
    output: str
    """stdout and stderr together, the first MiB."""


class Enclosure:
    def __init__(
        self,
        cache: Path,
        visible: Sequence[Path],
        environment: Mapping[str, str],
        memory_bytes: int = _MEMORY_BYTES,
        processes: int = SHARED_PROCESSES,
    ) -> None:
        """`visible`: folders to show besides the system's; `environment`: all that is passed on;
        `processes`: at most so many of the user's, whom all commands share."""
        self._cache = cache
        system = (path for path in _SYSTEM if Path(path).exists())
        self._visible = (*system, *(str(path) for path in visible))
        self._environment = dict(environment)
        self._memory_bytes, self._processes = memory_bytes, processes
        self._namespaces: bool | None = None
        self._held: tuple[str, ...] = ()
        self._preparing = threading.Lock()

    @property
    def layers(self) -> tuple[str, ...]:
        self.prepare()
        return tuple(COMPILER + name for name in self._held)

    @property
    def tried(self) -> bool:
        return self._namespaces is not None

    def prepare(self) -> None:
        """Tries, once, to break out. Raises `OSError` where no compiler can be confined."""
        with self._preparing:
            if not self.tried:
                with work_folder(self._cache) as scratch:
                    self._try(scratch)

    def _try(self, scratch: Path) -> None:
        with bait(_made(scratch / "bait")) as (laid, handle):
            trial = {"bait": asdict(laid), "folder": handle, "path": str(scratch / "bait")}
            for namespaces in (True, False):
                self._namespaces = namespaces
                done = self.run([], _made(scratch / str(namespaces)), _TRIAL_TIMEOUT_S, trial)
                if done.code == 0:
                    self._held = tuple(json.loads(done.output))
                    return
        self._namespaces = None
        raise OSError(f"no compiler can be confined here: {done.output[-400:]}")

    def run(
        self,
        command: Sequence[str],
        folder: Path,
        timeout_s: float,
        trial: dict[str, Any] | None = None,
    ) -> Finished:
        """Runs `command`, or a trial of the walls, in `folder`, killed whole after the time.

        `folder` is the only place that it can write to; `folder/tmp` is its HOME and TMPDIR.
        """
        assert self.tried, "prepare() comes first"
        home = _made(folder / "tmp")
        if os.geteuid() == 0 and self._namespaces:
            for path in (folder, home):
                os.chown(path, NOBODY, NOBODY)
        order = {
            "command": list(command),
            "folder": str(folder),
            "visible": self._visible,
            "namespaces": self._namespaces,
            "memory_bytes": self._memory_bytes,
            "processes": self._processes,
            "file_bytes": _FILE_BYTES,
            "cpu_seconds": int(timeout_s) + 10,
            "environment": self._environment | {"HOME": str(home), "TMPDIR": str(home)},
            "trial": trial,
        }
        text = json.dumps(order)
        if len(text) > _ORDER_BYTES:
            return Finished(1, "error: the flags and folders of headers are too long together\n")
        process = subprocess.Popen(
            # Without `site`, which takes longer than all the rest.
            [sys.executable, "-P", "-S", "-m", "evaluator.builder.enclosed", text],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={"PYTHONPATH": python_path(), "PATH": os.defpath},
            pass_fds=[trial["folder"]] if trial else [],
            start_new_session=True,
        )
        output, in_time = _read(process, time.monotonic() + timeout_s)
        return Finished(process.returncode if in_time else None, output)


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


def _read(process: subprocess.Popen[bytes], deadline: float) -> tuple[str, bool]:
    assert process.stdout is not None
    kept = b""
    with process.stdout as pipe:
        while data := _next(pipe.fileno(), deadline):
            kept += data[: _OUTPUT_BYTES - len(kept)]
        try:
            process.wait(max(0.0, deadline - time.monotonic()) if data is not None else 0.0)
            in_time = True
        except subprocess.TimeoutExpired:
            in_time = False
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            # The pipe's end is the end of the last one that could still print.
            gone = time.monotonic() + _DEATH_TIMEOUT_S
            while _next(pipe.fileno(), gone):
                pass
    return kept.decode(errors="replace"), in_time


def _next(pipe: int, deadline: float) -> bytes | None:
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    left = deadline - time.monotonic()
    if left <= 0 or not poll.poll(left * 1e3):
        return None
    return os.read(pipe, 2**16)
