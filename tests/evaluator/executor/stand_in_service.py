"""A judge, or a builder, that only does what a candidate's source tells it, and keeps a diary.

`python -m tests.evaluator.executor.stand_in_judge FD DEVICE FOLDER`, or `...stand_in_builder`. The
lines of a source that begin with `judge` (or `build`) are orders:

- `meet NAME COUNT`: wait until that many processes have come to that meeting;
- `await NAME`: wait until somebody has come to that meeting;
- `sleep SECONDS`, `die`, `no device` (a `DeviceError`), `refuse` (the other answer).

So a test that needs several to be at work at once fails by a time-out, and not by bad luck.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from evaluator.errors import DeviceError, InfrastructureError
from evaluator.evaluation import EvaluationRequest
from evaluator.ipc.service import leave_with, serve

MEETING_S = 60.0


class StandIn:
    """What a judge and a builder have in common."""

    def __init__(self, role: str, device: str, folder: Path) -> None:
        self.role = role
        self.device = device
        self.folder = folder

    def serve(self, fd: int, answer: bytes, refusal: bytes = b"") -> None:
        """Follow the orders in each question's candidate, and give the same answer to all, or the
        refusal to those that ask for it."""

        def follow(question: bytes) -> bytes:
            request = EvaluationRequest.model_validate_json(question)
            begin = time.monotonic()
            chosen = answer
            for line in request.candidate.source.splitlines():
                role, *order = line.split()
                if role == self.role and order == ["refuse"]:
                    chosen = refusal
                elif role == self.role:
                    self.do(order)
            self.note(request, begin)
            return chosen

        leave_with(fd)
        serve(fd, follow)

    def do(self, order: list[str]) -> None:
        match order:
            case ["meet", name, count]:
                self.come(name)
                self.wait(name, int(count))
            case ["await", name]:
                self.wait(name, 1)
            case ["come", name]:
                self.come(name)
            case ["sleep", seconds]:
                time.sleep(float(seconds))
            case ["die"]:
                os._exit(9)
            case ["no", "device"]:
                raise DeviceError(f"{self.device} fell off the bus")
            case _:
                raise ValueError(f"no such order: {order}")

    def come(self, name: str) -> None:
        place = self.folder / f"meeting-{name}"
        place.mkdir(exist_ok=True)
        (place / f"{self.role}-{os.getpid()}").touch()

    def wait(self, name: str, count: int) -> None:
        end = time.monotonic() + MEETING_S
        place = self.folder / f"meeting-{name}"
        while not place.is_dir() or len(list(place.iterdir())) < count:
            if time.monotonic() > end:
                raise InfrastructureError(f"nobody came to {name}")
            time.sleep(0.005)

    def note(self, request: EvaluationRequest, begin: float) -> None:
        """One line, in one write."""
        told = {
            "role": self.role,
            "device": self.device,
            "asked_for": request.settings.device,
            "reference": request.reference,
            "source": request.candidate.source,
            "begin": begin,
            "end": time.monotonic(),
        }
        diary = self.folder / "diary.jsonl"
        handle = os.open(diary, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(handle, json.dumps(told).encode() + b"\n")
        os.close(handle)
