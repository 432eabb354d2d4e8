"""A target that was started before there is a request for it: what takes long is done by then.

Starting a profiler, an interpreter and `import torch` takes seconds, and none of it depends on the
candidate. Both ends of the wait are here: `WarmTarget` starts the program and hands a request over;
`handed_over` is where the target waits, asleep, before it has touched a device. The pipe between
them has a name, since a profiler may close what it inherited. Its end is the owner's end too: when
the last writer is gone, however it went, the waiting target leaves, and so does its profiler.

A target is for one candidate: none ever sees a process in which another one ran.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from evaluator.collect.collected import Collected
from evaluator.collect.target_process import COLLECTED, REQUEST, Program, collected_in
from evaluator.errors import ProfilerError

_GATE = "gate"


class WarmTarget:
    """The target under another program, waiting for its request in a folder of its own."""

    def __init__(self, prefix: Sequence[str]) -> None:
        """Start it; `prefix` is the program that profiles, with its options. What these say of
        files is relative to the target's folder."""
        self.prefix = tuple(prefix)
        self._place = tempfile.TemporaryDirectory(prefix="refinery-target-")
        folder = Path(self._place.name)
        try:
            os.mkfifo(folder / _GATE, 0o600)
            # Reading as well: so opening waits for nobody, and writing can't fail.
            self._gate = os.open(folder / _GATE, os.O_RDWR | os.O_CLOEXEC)
            command = [*prefix, sys.executable, "-m", "evaluator.collect.target", str(folder)]
            try:
                self._program = Program(command, folder)
            except BaseException:
                os.close(self._gate)
                raise
        except BaseException:
            self._place.cleanup()
            raise
        self._folder = folder

    @property
    def pid(self) -> int:
        """Of the program that profiles, and of the session that the target is in."""
        return self._program.pid

    @property
    def waits(self) -> bool:
        """Whether it is still there."""
        return self._program.runs

    def run(self, folder: Path, *, report: str, timeout_s: float) -> Collected:
        """Hand over the request in `folder`; what was collected, and the file `report`, come there.

        Call it once. `timeout_s` counts from here. Raises `ProfilerError` as `Program.finish`,
        where nothing was collected, and where there is a request already.
        """
        begin = time.monotonic()
        try:
            # A candidate beside it may have found the folder: what lies there is not followed.
            with (self._folder / REQUEST).open("xb") as file:
                file.write((folder / REQUEST).read_bytes())
        except FileExistsError as error:
            raise ProfilerError("somebody has written into the folder of the spare") from error
        os.write(self._gate, f"{begin!r}\n".encode())
        text = self._program.finish(timeout_s)
        collected = collected_in(self._folder, "ncu", text)
        for name in (COLLECTED, report):
            if os.path.lexists(self._folder / name):
                # By its name alone: the folder was the candidate's, and it may be a link.
                shutil.move(self._folder / name, folder / name)
        return collected.after({"process": time.monotonic() - begin})

    def close(self) -> None:
        """End it, and everything in its session; nothing of it stays."""
        os.close(self._gate)
        self._program.end()
        self._place.cleanup()


def handed_over(folder: Path) -> float | None:
    """Wait until there is a request in `folder`: when that was, by `time.monotonic`.

    None: the owner is gone without one. Then nobody else will remove the folder: it is gone too.
    """
    try:
        # Where the owner died before this, there is no writer and never will be: opening must not
        # wait for one, and reading says so.
        gate = os.open(folder / _GATE, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    os.set_blocking(gate, True)
    said = os.read(gate, 64)
    os.close(gate)
    if not said:
        shutil.rmtree(folder, ignore_errors=True)
        return None
    (folder / _GATE).unlink()
    return float(said)
