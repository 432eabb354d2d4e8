"""A command that is run in a folder, and ended with its whole session when it takes too long."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from evaluator.errors import ProfilerError
from evaluator.judge.workers.printed import Printed

_LOG_BYTES = 16384
_WHOLE_BYTES = 128 * 2**20
"""Of what a program prints: a profiler's pages come so."""
_ENDING_S = 10.0
"""For a driver to take back what a killed process had of a GPU."""


class Program:
    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        *,
        apart: bool = False,
        name: str = "",
        most_bytes: int = _WHOLE_BYTES,
        stdin: int = subprocess.DEVNULL,
    ) -> None:
        """Start it. `apart`: in a session of its own, which others begin themselves. `name`: what
        it is called where it fails; by default as the command. `most_bytes`: of what it prints."""
        self.name = name or Path(command[0]).name
        self._printed = Printed(most_bytes)
        self._ended = False
        try:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=stdin,
                stdout=self._printed.for_worker,
                stderr=subprocess.STDOUT,
                start_new_session=apart,
            )
        except BaseException:
            self._printed.give_away()
            self._printed.close()
            raise
        self._printed.give_away()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def runs(self) -> bool:
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
            raise ProfilerError(f"{self.name} ended with {status}: {last_line(text)}")
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
        self._process.kill()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        return self._printed.close()


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # Not torch's own probes and hints, nor that ncu saw the program fail.
    noise = ("USDT:", "==PROF==", "==ERROR== The application", "Compile with `TORCH", "For debugg")
    said = [line for line in lines if not line.startswith(noise)] or lines
    return said[-1][:200] if said else "it printed nothing"
