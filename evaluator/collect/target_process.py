"""Starts the process that runs a candidate for a profiler, and ends it when it takes too long.

Without `ncu` around it the candidate is confined as it is before the judge. Under `ncu` (which
needs the driver, and often root, for its counters) an allow-listed environment, a session of its
own and a time-out that kills the whole group are all there is. That is why a profile is taken
after the verdict and never feeds it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Literal

from evaluator.build.builder import Builder
from evaluator.build_request import decode_request, encode_outcome
from evaluator.cache_folder import cache_folder
from evaluator.collect.call_counter import CallCounter
from evaluator.collect.collected import Collected, LoopFacts
from evaluator.collect.cuda_code import inspect_kernels
from evaluator.collect.static_code import inspect_loops
from evaluator.device_lock import device_lock
from evaluator.devices import describe
from evaluator.errors import ProfilerError
from evaluator.host_lock import LOCKS, lock_folder
from evaluator.sealed import sealed_copy
from evaluator.walls.environment import clean_environment
from evaluator.wire import Channel, ClosedError, Kind, WireError, pair

Mode = Literal["ncu", "torch_trace", "static", "cpu", "shares", "plain"]
ConfinedMode = Literal["torch_trace", "static", "cpu", "shares"]
REQUEST = "request.json"
COLLECTED = "collected.json"
_ROOT = Path(__file__).resolve().parents[2]
_LOG_BYTES = 16384
_COLLECTED_BYTES = 16 * 2**20
_NOBODY = 65534


def make_builder(device: str) -> Builder:
    """The builder that the judge of this device has, with the same cache."""
    return Builder(cache_folder(), cuda_arch=describe(device).cuda_architecture)


def run_confined(folder: Path, mode: ConfinedMode, *, device: str, timeout_s: float) -> Collected:
    """Run the target over `folder` (which holds the request) behind the judge's walls.

    Builds are answered here, mostly from the cache that the judge filled. Raises `ProfilerError`
    with one line when the target fails, is too slow or leaves nothing.
    """
    _give(folder)
    builder = make_builder(device)
    libraries: list[Path] = []
    mine, theirs = pair()
    with device_lock(device), tempfile.TemporaryFile() as sink:
        deadline = time.monotonic() + timeout_s
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", "evaluator.collect.confined", str(folder), mode,
                 str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                cwd=folder,
                env=_environment(folder),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
            )  # fmt: skip
        # Now, while it has one thread and may be looked at.
        counter = CallCounter(process.pid) if mode == "cpu" else None
        # It begins a session of its own once it gives up its privileges.
        try:
            _serve(mine, builder, libraries, counter, deadline)
            process.wait(max(0.1, deadline - time.monotonic()))
        except (WireError, subprocess.TimeoutExpired) as error:
            raise ProfilerError(_why(error, mode, timeout_s)) from None
        finally:
            mine.close()
            _kill(process)
            if counter is not None:
                counter.close()
        text = _printed(sink)
    if process.returncode != 0:
        raise ProfilerError(f"the {mode} collector failed: {_last_line(text)}")
    collected = collected_in(folder, mode, text)
    if mode == "static":
        return collected.model_copy(update={"gpu": inspect_kernels(libraries)})
    if collected.cpu is not None and counter is not None:
        counted = {"counts": counter.counts(), "no_counts": counter.reason}
        cpu = collected.cpu.model_copy(update={"loops": _loops(libraries), **counted})
        return collected.model_copy(update={"cpu": cpu})
    return collected


def run(
    command: Sequence[str],
    folder: Path,
    *,
    timeout_s: float,
    whole: bool = False,
    may_fail: bool = False,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Run a command in `folder` and return (the end of) what it printed.

    `environment` comes on top of the clean one. Raises `ProfilerError` if it takes too long, and,
    unless it `may_fail`, if it does.
    """
    program = Program(command, folder, environment)
    return program.finish(timeout_s, whole=whole, may_fail=may_fail)


class Program:
    """A command that runs in `folder`, in a session of its own and with a clean environment."""

    def __init__(
        self, command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        """Start it; `environment` comes on top of the clean one."""
        self._name = Path(command[0]).name
        self._sink = tempfile.TemporaryFile()  # noqa: SIM115 - closed in finish() and end()
        try:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=_environment(folder) | dict(environment or {}),
                stdin=subprocess.DEVNULL,
                stdout=self._sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except BaseException:
            self._sink.close()
            raise

    @property
    def pid(self) -> int:
        """Of the command, and of its session."""
        return self._process.pid

    @property
    def runs(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    def finish(self, timeout_s: float, *, whole: bool = False, may_fail: bool = False) -> str:
        """Wait for it, end what it left, and return (the end of) what it printed.

        Raises `ProfilerError` if it takes too long, and, unless it `may_fail`, if it fails.
        """
        with self._sink:
            try:
                status = self._process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                raise ProfilerError(f"{self._name} took longer than {timeout_s:g} s") from None
            finally:
                _kill(self._process)
            text = _printed(self._sink, None if whole else _LOG_BYTES)
        if "ERR_NVGPUCTRPERM" in text:
            raise ProfilerError(
                "the performance counters are not open to this user (ERR_NVGPUCTRPERM)"
            )
        if status != 0 and not may_fail:
            raise ProfilerError(f"{self._name} ended with {status}: {_last_line(text)}")
        return text

    def end(self) -> None:
        """Kill it and all that its session holds, unless it is finished."""
        if not self._sink.closed:
            with self._sink:
                _kill(self._process)


def _serve(
    channel: Channel,
    builder: Builder,
    libraries: list[Path],
    counter: CallCounter | None,
    deadline: float,
) -> None:
    """Build and count for the target until it hangs up."""
    while True:
        try:
            message = channel.receive(max(0.1, deadline - time.monotonic()))
        except ClosedError:
            return
        if message.kind is Kind.COUNT and counter is not None:
            with contextlib.suppress(ClosedError):
                channel.send(Kind.COUNTED, counter.answer(message.payload))
            continue
        if message.kind is not Kind.BUILD:
            raise WireError(f"{message.kind.name} out of turn")
        try:
            request = decode_request(message.payload)
        except ValueError as error:
            raise WireError(f"a malformed build request: {error}") from None
        outcome = builder.build(request, max(1.0, deadline - time.monotonic()))
        with contextlib.ExitStack() as stack:
            fds: tuple[int, ...] = ()
            if outcome.ok:
                libraries.append(Path(outcome.library))
                library = sealed_copy(Path(outcome.library))
                stack.callback(os.close, library)
                fds = (library,)
            with contextlib.suppress(ClosedError):
                channel.send(Kind.BUILT, encode_outcome(outcome), fds)


def _give(folder: Path) -> None:
    """The target gives up its uid: its folder must be its own. Ceilings come along as a copy."""
    stored = cache_folder() / "ceilings"
    if stored.is_dir():
        shutil.copytree(stored, folder / "cache" / "ceilings")
    if os.geteuid() == 0:
        os.chown(folder, _NOBODY, _NOBODY)


def _environment(folder: Path) -> dict[str, str]:
    inherited = os.environ.get("PYTHONPATH")
    # Where it gave up its uid it can't read ours; builds are answered over a channel then.
    copied = folder / "cache"
    return clean_environment(folder) | {
        "PYTHONPATH": f"{_ROOT}{os.pathsep}{inherited}" if inherited else str(_ROOT),
        # The judge has built this candidate, with this compiler, and measured this device already.
        **{name: value for name, value in os.environ.items() if name == "CXX"},
        "KERNEL_REFINERY_CACHE": str(copied if copied.is_dir() else cache_folder()),
        "XDG_CACHE_HOME": str(copied) if copied.is_dir() else _cache_home(),
        # Its TMPDIR is its own; a lock there would keep nobody out.
        LOCKS: str(lock_folder()),
    }


def _cache_home() -> str:
    return os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")


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


def _printed(sink: IO[bytes], most: int | None = _LOG_BYTES) -> str:
    sink.seek(0)
    content = sink.read()
    return (content if most is None else content[-most:]).decode(errors="replace")


def _why(error: Exception, mode: Mode, timeout_s: float) -> str:
    if isinstance(error, WireError) and str(error):
        return f"the {mode} collector broke off: {error}"
    return f"the {mode} collector took longer than {timeout_s:g} s"


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
