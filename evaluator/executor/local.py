"""Judging on this machine: one long-lived judge process a device."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from evaluator import errors
from evaluator.cache_folder import cache_folder
from evaluator.errors import InfrastructureError, JudgeDiedError
from evaluator.evaluation import Evaluation, EvaluationRequest
from evaluator.sandbox import python_path
from evaluator.wire import Channel, Kind, WireError, pair


class LocalExecutor:
    """Implements `Executor` with one judge for one device, started when first needed.

    Several threads may call `evaluate`: the device judges one candidate at a time.
    """

    def __init__(self, device: str = "cpu", cache: Path | None = None) -> None:
        self._device = device
        self._cache = cache or cache_folder()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        # What the judge prints would go right through a live view.
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close()

    def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Judge one candidate; raises `InfrastructureError` when our side breaks."""
        with self._lock:
            channel = self._started()
            try:
                channel.send(Kind.REQUEST, request.model_dump_json().encode())
                message = channel.receive()
            except WireError as error:
                status = self._stop()
                raise JudgeDiedError(
                    f"the judge's process ended (code {status}, {error!r}): {self._last_words()}"
                ) from None
            if message.kind is Kind.ERROR:
                name, _, text = message.payload.decode().partition("\n")
                kind: type[InfrastructureError] = getattr(errors, name, InfrastructureError)
                raise kind(text)
            return Evaluation.model_validate_json(message.payload)

    def _started(self) -> Channel:
        if self._channel is not None and self._process is not None and self._process.poll() is None:
            return self._channel
        self._stop()
        self._cache.mkdir(parents=True, exist_ok=True)
        self._channel, theirs = pair()
        with theirs:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "evaluator.judge.server",
                    str(theirs.fileno()),
                    self._device,
                    str(self._cache),
                ],
                pass_fds=[theirs.fileno()],
                env=os.environ | {"PYTHONPATH": python_path()},
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                # Ctrl-C is for the agent: it decides what happens to work in flight.
                start_new_session=True,
            )
        return self._channel

    def _last_words(self) -> str:
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, self._log.tell() - 2000))
        return self._log.read().decode(errors="replace").strip() or "it printed nothing"

    def _stop(self) -> int | None:
        """End the judge; its exit code."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._process is None:
            return None
        process, self._process = self._process, None
        try:
            return process.wait(10.0)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            return process.wait()

    def close(self) -> None:
        """End the judge and everything that it started."""
        with self._lock:
            self._stop()
            self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
