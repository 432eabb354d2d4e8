"""What a Ray actor holds: the executor of one machine, or of one GPU of it.

Nothing here imports Ray or torch, and no candidate comes near the actor's process: it holds the
same executor as an agent that judges where it runs, with the same processes behind the same walls.
"""

from __future__ import annotations

import importlib.metadata
import os
import threading
from collections.abc import Callable
from pathlib import Path

from evaluator.errors import DeviceError, InfrastructureError, named
from evaluator.evaluation import EvaluationRequest
from evaluator.executor.local import LocalExecutor
from evaluator.hardware.devices import describe, hardware_lines
from evaluator.ipc.service import Service
from evaluator.record import Record
from evaluator.rival import CheckRequest
from problems.errors import UsageError

_PACKAGES = ("kernel-refinery", "torch")


class Place(Record):
    """Where a judge judges. Two that differ may not serve one run."""

    device_name: str
    hardware: tuple[str, ...]
    """For the prompt, one fact a line."""
    packages: dict[str, str]
    """Versions of what decides on times and verdicts."""
    width: int = 1
    """Candidates at a time that keep the judge there and its builders busy."""

    def difference(self, other: Place) -> str:
        """What keeps the two out of one run, as words; empty where nothing does."""
        if self.device_name != other.device_name:
            return f"{self.device_name} and {other.device_name}"
        if self.packages != other.packages:
            return f"{self.packages} and {other.packages}"
        return ""


class Answer(Record):
    """What an actor says: the payload, or which `InfrastructureError` it met."""

    payload: str = ""
    error: str = ""
    message: str = ""

    def value(self) -> str:
        if self.error:
            raise named(self.error, self.message)
        return self.payload


class RayJudge:
    def __init__(self, device: str, executors: int = 1) -> None:
        self._device = device
        self._executor = LocalExecutor(device, executors=executors)
        _settle()
        self._executor.prepare()
        self._services: dict[str, Service] = {}
        self._one_at_a_time = threading.Lock()

    def place(self) -> bytes:
        """Where it judges; `DeviceError` where its device is not there."""

        def look() -> str:
            try:
                name, hardware = describe(self._device).name, hardware_lines(self._device)
            except UsageError as error:
                raise DeviceError(str(error)) from None
            packages = {name: importlib.metadata.version(name) for name in _PACKAGES}
            return Place(
                device_name=name,
                hardware=tuple(hardware),
                packages=packages,
                width=self._executor.width,
            ).model_dump_json()

        return _answered(look)

    def ask(self, task: str, question: bytes) -> bytes:
        """`check` a problem, `judge` a candidate, or have the service of that module answer, which
        is started when first asked. May be called from several threads."""
        return _answered(lambda: self._asked(task, question))

    def _asked(self, task: str, question: bytes) -> str:
        if task == "check":
            checked = self._executor.check(CheckRequest.model_validate_json(question))
            return checked.model_dump_json()
        if task == "judge":
            request = EvaluationRequest.model_validate_json(question)
            return self._executor.evaluate(request).model_dump_json()
        with self._one_at_a_time:
            if task not in self._services:
                self._services[task] = Service(task)
            return self._services[task].ask(question).decode()


def _answered(answer: Callable[[], str]) -> bytes:
    _settle()
    try:
        reply = Answer(payload=answer())
    except InfrastructureError as error:
        reply = Answer(error=type(error).__name__, message=str(error))
    return reply.model_dump_json().encode()


def _settle() -> None:
    """Remove Ray's settings before one of our processes is started here.

    Ray sets OMP_NUM_THREADS to the cores that an actor asked for, before each call; a judge takes
    them all, unless Ray was started with another setting. The cluster's token is Ray's business.
    """
    os.environ.pop("RAY_AUTH_TOKEN", None)
    started_with = Path("/proc/self/environ").read_bytes().split(b"\0")
    if not any(item.startswith(b"OMP_NUM_THREADS=") for item in started_with):
        os.environ.pop("OMP_NUM_THREADS", None)
