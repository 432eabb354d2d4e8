"""The process that runs a candidate below a profiler or a sanitizer.

It may be started before there is a request for it. Starting a profiler, an interpreter and
`import torch` takes seconds, and none of it depends on the candidate. Both ends of the wait are
here: `Target` starts the program and hands a request over; `handed_over` is where the target waits,
asleep. All that it does on a device before is to make a context, where it is asked to. The pipe
between them has a name, since a profiler may close what it inherited. When the last writer of the
pipe is gone, however it went, the waiting target leaves, and so does its profiler.

A target is for one candidate: none ever sees a process in which another one ran. It waits behind
its walls (`walled.py`) already. A profile is taken after the verdict and never feeds it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from evaluator.collect.collected import Collected
from evaluator.collect.target.broker import Broker, listening
from evaluator.collect.target.program import Program, last_line
from evaluator.errors import ProfilerError
from evaluator.evaluation import EvaluationRequest
from evaluator.ipc.wire import Channel, WireError, WireTimeoutError
from evaluator.walls.environment import clean_environment, python_module
from evaluator.walls.folders import PACKAGES
from evaluator.walls.scratch import remove
from problems.cache_folder import cache_folder
from problems.plain_file import open_plain

Collector = Literal["torch_trace", "cpu", "shares"]
"""What collects in the target's own process."""
Watched = Literal["ncu", "plain"]
"""In these modes another program watches: `ncu` or a sanitizer."""
Mode = Literal[Collector, Watched]
REQUEST = "request.json"
COLLECTED = "collected.json"
_COLLECTED_BYTES = 16 * 2**20
CACHE = "cache"
_GATE = "gate"
_ASLEEP = "asleep"
_CONTEXT = "context"
_CONTEXT_S = 60.0
_PACKAGES = "packages"
_LOOK_S = 0.2
_PRINTED_BYTES = 8 * 2**20
"""Many times what a sanitizer says of all the errors that it may tell of."""


class Target:
    def __init__(
        self, mode: Watched, prefix: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> None:
        """Start it; `prefix` is the program that watches, with its options. What these say of files
        is relative to the target's folder. `environment` comes on top of the clean one."""
        self.mode = mode
        self.prefix = tuple(prefix)
        folder = Path(tempfile.mkdtemp(prefix="refinery-target-"))
        walled = python_module(
            "evaluator.collect.target.walled", str(folder), str(os.getpid()), mode, *prefix
        )
        variables = clean_environment(folder) | dict(environment or {})
        # Its environment names no other folder of the judge.
        variables["KERNEL_REFINERY_CACHE"] = str(folder / CACHE)
        variables["PYTHONPATH"] = f"{folder / _PACKAGES}{os.pathsep}{variables['PYTHONPATH']}"
        with contextlib.ExitStack() as undoing:
            undoing.callback(remove, folder)
            lend_ceilings(folder)
            _name_packages(folder / _PACKAGES)
            os.mkfifo(folder / _GATE)
            # The process that will wait there; no other one comes into the folder.
            (folder / _GATE).chmod(0o644)
            # For reading too: opening does not wait for a reader, and writing cannot fail.
            self._gate = os.open(folder / _GATE, os.O_RDWR | os.O_CLOEXEC)
            undoing.callback(os.close, self._gate)
            self._program = Program(
                walled,
                folder,
                variables,
                name=Path(prefix[0]).name,
                most_bytes=_PRINTED_BYTES,
            )
            undoing.pop_all()
        self._folder = folder

    @property
    def pid(self) -> int:
        """Of the first process: with it everything ends that runs behind the walls."""
        return self._program.pid

    @property
    def waits(self) -> bool:
        return self._program.runs

    @property
    def is_asleep(self) -> bool:
        return (self._folder / _ASLEEP).exists()

    def make_context(self, device: str) -> None:
        """Have it make its context, while the caller holds the device; it ends where it can't."""
        os.write(self._gate, f"{device}\n".encode())
        end = time.monotonic() + _CONTEXT_S
        while self.waits and not (self._folder / _CONTEXT).exists():
            if time.monotonic() > end:
                self._program.end()
            time.sleep(_LOOK_S / 20)

    def run(self, folder: Path, broker: Broker, *, report: str, timeout_s: float) -> Collected:
        """Hand over the request in `folder`: what was collected. The file `report` comes there.

        Raises `ProfilerError` as `watch`, and where nothing was collected; as `Broker.error` says.
        """
        begin = time.monotonic()
        try:
            text = self.watch(folder, broker, timeout_s=timeout_s)
        except ProfilerError as error:
            raise broker.error(str(error)) from None
        collected = taken(self._folder, folder, report)
        if collected is None:
            raise broker.error(f"the {self.mode} collector left nothing: {last_line(text)}")
        return collected.after({"process": time.monotonic() - begin})

    def watch(
        self,
        folder: Path,
        broker: Broker,
        *,
        timeout_s: float,
        whole: bool = False,
        may_fail: bool = False,
    ) -> str:
        """Hand over the request in `folder`; (the end of) what the program printed, once it ended.

        Call it once. `broker` serves the target. `timeout_s` counts from here, without what
        the device was waited for. Raises `ProfilerError` as `Program.finish`, where the target asks
        for what there isn't, and where there is a request already.
        """
        begin = time.monotonic()
        try:
            # A candidate beside it may have found the folder: what lies there is not followed.
            with (self._folder / REQUEST).open("xb") as file:
                os.fchmod(file.fileno(), 0o644)
                file.write((folder / REQUEST).read_bytes())
        except FileExistsError as error:
            raise ProfilerError("another process wrote into the folder of the target") from error
        with listening(self._folder) as door:
            os.write(self._gate, f"{begin!r}\n".encode())
            try:
                left_s = self._serve(door, broker, timeout_s)
            except WireError as error:
                self._program.end()
                why = f"broke off: {error}" if str(error) else f"took longer than {timeout_s:g} s"
                raise ProfilerError(f"{self._program.name} {why}") from None
        return self._program.finish(left_s, whole=whole, may_fail=may_fail, limit_s=timeout_s)

    def _serve(self, door: socket.socket, broker: Broker, timeout_s: float) -> float:
        deadline = time.monotonic() + timeout_s
        door.settimeout(_LOOK_S)
        while self.waits:
            if time.monotonic() > deadline or broker.ended():
                raise WireTimeoutError
            with contextlib.suppress(TimeoutError):
                end, _ = door.accept()
                with end:
                    return broker.serve(
                        Channel(end), deadline - time.monotonic(), lambda: self.waits
                    )
        return 0.0

    def close(self) -> None:
        os.close(self._gate)
        self._program.end()
        remove(self._folder)


def _name_packages(folder: Path) -> None:
    """Links to our packages: behind the walls their folder cannot be listed, and they need not be
    installed."""
    folder.mkdir()
    for package in PACKAGES:
        (folder / package.name).symlink_to(package)
    folder.chmod(0o755)


def write_request(folder: Path, request: EvaluationRequest) -> None:
    # The candidate reads it there: of the problem, it has what the prompt shows.
    shown = request.model_copy(update={"hidden_references": (), "weights": None})
    (folder / REQUEST).write_text(shown.model_dump_json())


def read_request(folder: Path) -> EvaluationRequest:
    return EvaluationRequest.model_validate_json((folder / REQUEST).read_text())


def lend_ceilings(folder: Path) -> None:
    """What was measured of the devices goes to a target as a copy: the cache is out of its reach.

    Where there is none, the target measures for itself.
    """
    stored = cache_folder() / "ceilings"
    if not stored.is_dir():
        return
    lent = folder / CACHE / stored.name
    lent.mkdir(parents=True)
    for file in stored.iterdir():
        shutil.copyfile(file, lent / file.name)
    # Whatever our umask: the target is another user.
    for path in (lent.parent, lent, *lent.iterdir()):
        path.chmod(0o755)


def handed_over(folder: Path, make_context: Callable[[str], object]) -> float | None:
    """Wait until there is a request in `folder`: when that was, by `time.monotonic`.

    A device's name may come before it. None: the owner is gone without one. The folder is removed
    then, as no other process will.
    """
    try:
        # Where the owner died before this, there is no writer and never will be: opening must not
        # wait for one, and reading says so.
        gate = os.open(folder / _GATE, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    os.set_blocking(gate, True)
    (folder / _ASLEEP).touch()
    with os.fdopen(gate) as lines:
        for line in lines:
            if line[0].isdigit():
                (folder / _GATE).unlink()
                return float(line)
            make_context(line.strip())
            (folder / _CONTEXT).touch()
    remove(folder)
    return None


def taken(left: Path, folder: Path, report: str) -> Collected | None:
    """What a target has `left`, if that can be read; its file `report` comes to `folder`."""
    try:
        with open_plain(left / COLLECTED, _COLLECTED_BYTES) as file:
            collected = Collected.model_validate_json(file.read())
    except (OSError, ValueError):
        return None
    if (left / report).is_file() and not (left / report).is_symlink():
        shutil.move(left / report, folder / report)
    return collected
