"""The processes of a machine that build candidates without a device: `build_ahead.py`."""

from __future__ import annotations

import queue
import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path

from evaluator.errors import InfrastructureError
from evaluator.evaluation import EvaluationRequest
from evaluator.hardware.cores import usable_cores
from evaluator.hardware.device_lock import device_lock_if_free
from evaluator.ipc.service import Service
from evaluator.judge.builds.built_ahead import BuiltAhead


class Builders:
    def __init__(self, module: str, device: str, cache: Path, number: int) -> None:
        self.services = [Service(module, device, str(cache)) for _ in range(number)]
        self._on_cpu = device == "cpu"
        # Who built last builds next: the others need not be started as long as it keeps up.
        self._idle: queue.LifoQueue[Service] = queue.LifoQueue()
        for service in reversed(self.services):
            self._idle.put(service)
        self._early = ThreadPoolExecutor(number, thread_name_prefix="early-builds")
        self._lock = threading.Lock()
        self._begun: dict[str, Future[None]] = {}
        """Early builds that wait or are under way, by candidate."""

    def begin(self, request: EvaluationRequest) -> None:
        name = request.candidate.hash
        with self._lock:
            if name in self._begun:
                return
            future = self._begun[name] = self._early.submit(self._build_early, request)
        future.add_done_callback(lambda _: self._begun.pop(name))

    def _build_early(self, request: EvaluationRequest) -> None:
        # What fails here fails again in the evaluation, which reports it.
        with suppress(InfrastructureError):
            if not self._on_cpu:
                self._asked(request)
                return
            with device_lock_if_free("cpu") as free:
                if free:
                    self._asked(request)

    def build(self, request: EvaluationRequest) -> BuiltAhead:
        """Have a candidate built. Waits for a builder, or for the early build of this candidate,
        which leaves everything in the cache. Raises `InfrastructureError`."""
        with self._lock:
            begun = self._begun.get(request.candidate.hash)
        if begun is not None and not begun.cancel():
            wait([begun])
        return self._asked(request)

    def _asked(self, request: EvaluationRequest) -> BuiltAhead:
        builder = self._idle.get()
        try:
            answer = builder.ask(request.model_dump_json().encode())
        finally:
            self._idle.put(builder)
        return BuiltAhead.model_validate_json(answer)

    def close(self) -> None:
        self._early.shutdown(wait=False, cancel_futures=True)
        for service in self.services:
            service.hang_up()
        self._early.shutdown()
        for service in self.services:
            service.close()


def builders_for(devices: int, executors: int = 1) -> int:
    """Processes that build for that many devices: four for each, as a build takes several times
    as long as judging, and some to spare, in at most half of the cores, since nvcc runs several
    processes at once; of the cores an executor has its part."""
    return max(1, min(2 + 4 * devices, usable_cores() // executors // 2))
