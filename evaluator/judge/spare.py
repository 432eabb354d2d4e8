"""A worker that is made before its candidate is there."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable

from evaluator.errors import InfrastructureError
from evaluator.failure import Failure
from evaluator.judge.process import START_TIMEOUT_S, WorkerProcess
from evaluator.judge.worker_limits import WorkerLimits
from evaluator.wire import Kind, WireError


class Spare:
    """One worker in the making, or made. That it can't be made is no failure of anybody's."""

    def __init__(
        self,
        limits: WorkerLimits,
        device: str,
        fork: Callable[[], WorkerProcess],
        then: Callable[[], None],
    ) -> None:
        """Begins at once, in a thread of its own. `device`: whose context the worker makes.

        `fork` may raise `InfrastructureError`. `then` is called once the worker is made, or can't
        be, by whatever thread that is.
        """
        self.limits = limits
        self.worker: WorkerProcess | None = None
        """Once it is made, and None where it couldn't be."""
        self._device = device
        self._thread = threading.Thread(
            target=self._run, args=(fork, then), name="spare", daemon=True
        )
        try:
            self._thread.start()
        except RuntimeError as error:
            # A candidate may have taken all the threads that there are.
            print(f"no spare worker: {error}", file=sys.stderr)
            then()

    def _run(self, fork: Callable[[], WorkerProcess], then: Callable[[], None]) -> None:
        try:
            self._make(fork)
        finally:
            then()

    def _make(self, fork: Callable[[], WorkerProcess]) -> None:
        try:
            worker = fork()
        except InfrastructureError as error:
            # Whoever forks next meets the same error and tells it where it matters.
            print(f"no spare worker: {error}", file=sys.stderr)
            return
        if self._is_warm(worker):
            self.worker = worker

    def _is_warm(self, worker: WorkerProcess) -> bool:
        """Whether it has done what needs no candidate, now or before; if not, it is ended."""
        try:
            worker.channel.send(Kind.WARM, json.dumps({"device": self._device}).encode())
            answer = worker.receive(START_TIMEOUT_S)
        except WireError as error:
            said = f"{error!r} {worker.end().log[-400:]}"
        else:
            if answer.kind is Kind.WARMED:
                return True
            said = Failure.decode(answer.payload).summary
            worker.end()
        print(f"no spare worker: it could not warm up: {said}", file=sys.stderr)
        return False

    def settle(self) -> None:
        """Wait until it is made, or can't be: from then on it does nothing."""
        if self._thread.ident is not None:
            self._thread.join()

    def take(self, limits: WorkerLimits) -> WorkerProcess | None:
        """The worker, if it has these limits and still answers; else None, and it is ended."""
        self.settle()
        worker = self.worker
        if worker is None:
            return None
        if limits != self.limits:
            worker.end()
            return None
        # Asked again: what a candidate does to a device can spoil all contexts there.
        return worker if self._is_warm(worker) else None

    def end(self) -> None:
        """End the worker, once it is made."""
        self.settle()
        if self.worker is not None:
            self.worker.end()
