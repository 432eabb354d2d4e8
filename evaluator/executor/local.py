"""Judging on this machine: one long-lived judge process a device, builds ahead beside it."""

from __future__ import annotations

import json
import os
import queue
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from evaluator.cache_folder import cache_folder
from evaluator.evaluation import Backend, Evaluation, EvaluationRequest
from evaluator.service import Service

_MOST_BUILDERS = 6


class LocalExecutor:
    """Implements `Executor` with one judge for one device, started when first needed.

    Several threads may call `evaluate`. CUDA candidates are built side by side, in processes that
    do without the device; the device judges one candidate at a time. On a CPU nothing is built
    ahead: compilers would disturb what is being timed.
    """

    def __init__(self, device: str = "cpu", cache: Path | None = None) -> None:
        folder = cache or cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        arguments = (device, str(folder))
        self._ahead = device != "cpu"
        self._turn = threading.Lock()
        self._judge = Service("evaluator.judge.server", *arguments)
        # Half of the cores: nvcc runs several processes at once.
        builders = max(1, min(_MOST_BUILDERS, (os.cpu_count() or 1) // 2))
        self._builders = [
            Service("evaluator.judge.build_ahead", *arguments) for _ in range(builders)
        ]
        self._idle: queue.SimpleQueue[Service] = queue.SimpleQueue()
        for builder in self._builders:
            self._idle.put(builder)

    def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Judge one candidate; raises `InfrastructureError` when our side breaks."""
        question = request.model_dump_json().encode()
        ahead = self._ahead and request.candidate.backend is Backend.CUDA
        built = self._build(question) if ahead else None
        with self._turn:
            answer = self._judge.ask(question)
        evaluation = Evaluation.model_validate_json(answer)
        if built is None or evaluation.build is None:
            return evaluation
        seconds, cached = built
        again = evaluation.seconds.build
        return evaluation.model_copy(
            update={
                "build": evaluation.build.model_copy(
                    update={"seconds": seconds + evaluation.build.seconds, "cached": cached}
                ),
                "seconds": evaluation.seconds.model_copy(update={"build": seconds + again}),
            }
        )

    @property
    def judge_pid(self) -> int | None:
        """Of the judge's process, while it runs."""
        return self._judge.pid

    def _build(self, question: bytes) -> tuple[float, bool]:
        builder = self._idle.get()
        try:
            told = json.loads(builder.ask(question))
        finally:
            self._idle.put(builder)
        return float(told["seconds"]), bool(told["cached"])

    def close(self) -> None:
        """End the judge and everything that was started."""
        with self._turn:
            self._judge.close()
        for builder in self._builders:
            builder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
