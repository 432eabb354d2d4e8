"""Starts the process that runs a candidate for a profiler, and ends it when it takes too long.

The candidate is confined as it is before the judge, `confined.py` where this package collects and
`walled.py` where `ncu` or a sanitizer does; builds are made here, and the device is held here
(`broker.py`). A profile is taken after the verdict and never feeds it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Literal

from evaluator.collect.code.cuda_code import inspect_kernels
from evaluator.collect.code.static_code import inspect_loops
from evaluator.collect.collected import Collected, LoopFacts
from evaluator.collect.counters.call_counter import CallCounter
from evaluator.collect.target.broker import Broker
from evaluator.errors import ProfilerError
from evaluator.hardware.device_lock import device_lock
from evaluator.ipc.wire import WireError, pair
from evaluator.judge.workers.printed import Printed
from evaluator.walls.environment import clean_environment, python_module
from problems.cache_folder import cache_folder

ConfinedMode = Literal["torch_trace", "static", "cpu", "shares"]
WatchedMode = Literal["ncu", "plain"]
Mode = Literal[ConfinedMode, WatchedMode]
COLLECTED = "collected.json"
_LOG_BYTES = 16384
_WHOLE_BYTES = 128 * 2**20
"""Of what a program prints: a profiler's pages come so."""
_CACHE = "cache"
_COLLECTED_BYTES = 16 * 2**20
_NOBODY = 65534
_ENDING_S = 10.0
"""For a driver to take back what a killed process had of a GPU."""


def run_confined(folder: Path, mode: ConfinedMode, *, device: str, timeout_s: float) -> Collected:
    """Run the target over `folder` (which holds the request) behind the judge's walls.

    Builds are answered here, mostly from the cache that the judge filled. Raises `ProfilerError`
    with one line when the target fails, is too slow or leaves nothing.
    """
    with tempfile.TemporaryDirectory(prefix="refinery-") as kept:
        return _run_confined(folder, mode, device, timeout_s, Path(kept))


def _run_confined(
    folder: Path, mode: ConfinedMode, device: str, timeout_s: float, kept: Path
) -> Collected:
    """`kept`: an empty folder of ours for copies of the libraries, which outlive the cache's."""
    _give(folder)
    mine, theirs = pair()
    name, module = f"the {mode} collector", "evaluator.collect.target.confined"
    with device_lock(device):
        begin = time.monotonic()
        with theirs:
            line = theirs.fileno()
            # It begins a session of its own once it gives up its privileges.
            program = Program(
                python_module(module, str(folder), mode, str(line)),
                folder,
                target_environment(folder),
                name=name,
                most_bytes=_LOG_BYTES,
                handed=(line,),
            )
        # Now, while it has one thread and may be looked at.
        counter = CallCounter(program.pid) if mode == "cpu" else None
        try:
            with Broker(device, counter=counter, kept=kept) as broker:
                left_s = broker.serve(
                    mine, timeout_s - (time.monotonic() - begin), lambda: program.runs
                )
            text = program.finish(left_s, limit_s=timeout_s)
        except WireError as error:
            raise ProfilerError(why_broken_off(error, name, timeout_s)) from None
        finally:
            mine.close()
            program.end()
            if counter is not None:
                counter.close()
    collected = collected_in(folder, mode, text)
    if mode == "static":
        return collected.model_copy(update={"gpu": inspect_kernels(broker.libraries)})
    if collected.cpu is not None and counter is not None:
        counted = {"counts": counter.counts(), "no_counts": counter.reason}
        cpu = collected.cpu.model_copy(update={"loops": _loops(broker.libraries), **counted})
        return collected.model_copy(update={"cpu": cpu})
    return collected


def run(
    command: Sequence[str],
    folder: Path,
    *,
    timeout_s: float,
    whole: bool = False,
    may_fail: bool = False,
    name: str = "",
) -> str:
    """Run a command of ours in `folder` and return (the end of) what it printed.

    Raises `ProfilerError` if it takes too long, and, unless it `may_fail`, if it does.
    """
    program = Program(command, folder, clean_environment(folder), apart=True, name=name)
    return program.finish(timeout_s, whole=whole, may_fail=may_fail)


class Program:
    """A command that runs in `folder` and is ended with its whole session."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        *,
        apart: bool = False,
        name: str = "",
        most_bytes: int = _WHOLE_BYTES,
        handed: Sequence[int] = (),
    ) -> None:
        """Start it. `apart`: in a session of its own, which others begin themselves. `name`: what
        it is called where it fails; by default as the command. `most_bytes`: of what it prints.
        `handed`: the descriptors that it gets."""
        self.name = name or Path(command[0]).name
        self._printed = Printed(most_bytes)
        self._ended = False
        try:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=self._printed.for_worker,
                stderr=subprocess.STDOUT,
                start_new_session=apart,
                pass_fds=handed,
            )
        except BaseException:
            self._printed.give_away()
            self._printed.close()
            raise
        self._printed.give_away()

    @property
    def pid(self) -> int:
        """Of the command."""
        return self._process.pid

    @property
    def runs(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    def finish(
        self,
        timeout_s: float,
        *,
        whole: bool = False,
        may_fail: bool = False,
        limit_s: float | None = None,
    ) -> str:
        """Wait for it, end what it left, and return (the end of) what it printed.

        `limit_s`: what it had in all, where `timeout_s` is the rest of it.

        Raises `ProfilerError` if it takes too long, if not all of the `whole` was kept, if a signal
        ended it, and, unless it `may_fail`, if it fails.
        """
        try:
            status = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            why = f"{self.name} took longer than {limit_s or timeout_s:g} s"
            raise ProfilerError(why) from None
        finally:
            text = self.end()
        text = text if whole else text[-_LOG_BYTES:]
        if "ERR_NVGPUCTRPERM" in text:
            raise ProfilerError(
                "the performance counters are not open to this user (ERR_NVGPUCTRPERM)"
            )
        if whole and self._printed.cut:
            raise ProfilerError(f"{self.name} printed more than is read of it")
        # From behind walls a signal's number comes with 128 on top.
        if status != 0 and (not may_fail or status < 0 or status == 128 + signal.SIGKILL):
            raise ProfilerError(f"{self.name} ended with {status}: {_last_line(text)}")
        return text

    def end(self) -> str:
        """Kill it and all that its session holds, unless that is done: what it had printed."""
        if self._ended:
            return ""
        self._ended = True
        # Walls end when all behind them has: the next user of the device is alone there.
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_ENDING_S)
        _kill(self._process)
        return self._printed.close()


def _give(folder: Path) -> None:
    """The target gives up its uid: its folder must be its own."""
    lend_ceilings(folder)
    if os.geteuid() == 0:
        os.chown(folder, _NOBODY, _NOBODY)


def lend_ceilings(folder: Path) -> None:
    """What was measured of the devices goes to a target as a copy: the cache is out of its reach.

    Where there is none, the target measures for itself.
    """
    stored = cache_folder() / "ceilings"
    if not stored.is_dir():
        return
    lent = folder / _CACHE / stored.name
    lent.mkdir(parents=True)
    for file in stored.iterdir():
        shutil.copyfile(file, lent / file.name)
    # Whatever our umask: the target is another user.
    for path in (lent.parent, lent, *lent.iterdir()):
        path.chmod(0o755)


def target_environment(folder: Path) -> dict[str, str]:
    """For a target in `folder`: nothing in it leads to anything else of ours."""
    return clean_environment(folder) | {"KERNEL_REFINERY_CACHE": str(folder / _CACHE)}


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and whatever its session still holds; children may outlive it."""
    process.kill()
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def collected_in(folder: Path, mode: Mode, log: str) -> Collected:
    """What the target left there; `ProfilerError` with the log's last line if it left nothing."""
    try:
        with open_plain(folder / COLLECTED, _COLLECTED_BYTES) as file:
            return Collected.model_validate_json(file.read())
    except (OSError, ValueError):
        raise ProfilerError(f"the {mode} collector left nothing: {_last_line(log)}") from None


def open_plain(path: Path, most_bytes: int) -> IO[bytes]:
    """A file of a folder that may have belonged to the candidate, open for reading.

    Raises `OSError` for a link, for what is no plain file, and for one that is larger.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    file = os.fdopen(handle, "rb")
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode) or status.st_size > most_bytes:
        file.close()
        raise OSError(f"{path.name} is no plain file of a sensible size")
    return file


def is_plain(path: Path) -> bool:
    """Whether a file is there, and no link: it may have been the candidate's to name."""
    return path.is_file() and not path.is_symlink()


def why_broken_off(error: Exception, what: str, timeout_s: float) -> str:
    """What to say where serving a target, or waiting for its end, has failed."""
    if isinstance(error, WireError) and str(error):
        return f"{what} broke off: {error}"
    return f"{what} took longer than {timeout_s:g} s"


def _loops(libraries: list[Path]) -> LoopFacts | None:
    found = [facts for library in libraries if (facts := inspect_loops(library)) is not None]
    if not found:
        return None
    return LoopFacts(
        packed=sum(facts.packed for facts in found),
        scalar=sum(facts.scalar for facts in found),
        widest_bits=max(facts.widest_bits for facts in found),
        calls=tuple(sorted({name for facts in found for name in facts.calls})),
    )


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # torch's tracer prints probes of its own around what it traces.
    lines = [line for line in lines if not line.startswith("USDT:")]
    return lines[-1][:200] if lines else "it printed nothing"
