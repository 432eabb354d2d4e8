"""A worker that is made before its candidate is there, while another one is being judged."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

from evaluator.errors import InfrastructureError
from evaluator.judge.process import WorkerProcess
from evaluator.judge.worker_limits import WorkerLimits


class Spare:
    """One worker in the making, or made. That it can't be made is no failure of anybody's."""

    def __init__(self, limits: WorkerLimits, make: Callable[[], WorkerProcess]) -> None:
        """Begins at once, in a thread of its own; `make` may raise `InfrastructureError`."""
        self.limits = limits
        self._worker: WorkerProcess | None = None
        self._thread = threading.Thread(target=self._make, args=(make,), name="spare", daemon=True)
        self._thread.start()

    def _make(self, make: Callable[[], WorkerProcess]) -> None:
        try:
            self._worker = make()
        except InfrastructureError as error:
            # Whoever forks next meets the same error and tells it where it matters.
            print(f"no spare worker: {error}", file=sys.stderr)

    def settle(self) -> None:
        """Wait until it is made, or can't be: from then on it does nothing."""
        self._thread.join()

    def take(self, limits: WorkerLimits) -> WorkerProcess | None:
        """The worker, if it has these limits and still waits; else None, and it is ended."""
        self.settle()
        worker = self._worker
        if worker is not None and (limits != self.limits or not worker.waits):
            worker.end()
            return None
        return worker

    def end(self) -> None:
        """End the worker, once it is made."""
        self.settle()
        if self._worker is not None:
            self._worker.end()
