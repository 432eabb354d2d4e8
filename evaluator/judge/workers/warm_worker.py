"""A worker that is made before its candidate is there."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor, wait

from evaluator.errors import InfrastructureError
from evaluator.ipc.failure import Failure
from evaluator.ipc.wire import Kind, WireError
from evaluator.judge.workers.process import START_TIMEOUT_S, WorkerLimits, WorkerProcess
from evaluator.worker.orders import WarmOrder


class WarmWorker:
    """One worker in the making, or made. A failure to make it is never raised.

    It is made in two steps: forked, confined and with CUDA's driver at hand, which concerns no
    device; then with the device's context, which takes a while there. On a CPU that is nothing.
    """

    def __init__(
        self,
        limits: WorkerLimits,
        device: str,
        fork: Callable[[], WorkerProcess],
        making: Executor,
    ) -> None:
        """Begins with the first step at once, in `making`. `device`: whose context the worker
        makes. `fork` may raise `InfrastructureError`."""
        self.limits = limits
        self.worker: WorkerProcess | None = None
        """Once it is made, and None where it couldn't be."""
        self._device = device
        self._making = making
        self._has_context = self._completing = False
        self._step = making.submit(self._make, fork)

    def finish(self) -> None:
        self._completing = True
        self._step = self._making.submit(self._make_context)

    def _make(self, fork: Callable[[], WorkerProcess]) -> None:
        try:
            worker = fork()
        except InfrastructureError as error:
            # The next fork meets the same error and reports it where it matters.
            print(f"no warm worker: {error}", file=sys.stderr)
            return
        if self._is_warm(worker, context=False):
            self.worker = worker

    def _make_context(self) -> None:
        if self.worker is None or self._has_context or self._device == "cpu":
            return
        self._has_context = self._is_warm(self.worker)
        if not self._has_context:
            self.worker = None

    def _is_warm(self, worker: WorkerProcess, *, context: bool = True) -> bool:
        try:
            worker.channel.send(Kind.WARM, WarmOrder(self._device, context).encode())
            answer = worker.channel.receive(START_TIMEOUT_S)
        except WireError as error:
            said = f"{error!r} {worker.end().log[-400:]}"
        else:
            if answer.kind is Kind.WARMED:
                return True
            said = Failure.decode(answer.payload).summary
            worker.end()
        print(f"no warm worker: it could not warm up: {said}", file=sys.stderr)
        return False

    @property
    def in_the_making(self) -> bool:
        return not self._step.done()

    def settle(self) -> None:
        wait([self._step])

    def settle_context(self) -> None:
        if self._completing:
            self.settle()

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
        self.settle()
        if self.worker is not None:
            self.worker.end()


class WarmPool:
    """They are made one after the other, in one thread, and handed out in that order. Only the
    first gets the context of a GPU, which takes memory there."""

    def __init__(
        self,
        device: str,
        fork: Callable[[WorkerLimits], WorkerProcess],
        may_wait: Callable[[], bool],
    ) -> None:
        """`device`: whose context a warm worker makes. Where none `may_wait`, because a candidate
        could reach it, there is none, and a fork takes as long as it takes."""
        self._device = device
        self._fork = fork
        self._may_wait = may_wait
        self._waiting: deque[WarmWorker] = deque()
        self._making = ThreadPoolExecutor(1, "warm worker")
        # The thread starts now: a candidate may take all the threads that there are.
        self._making.submit(int)

    @property
    def first(self) -> WarmWorker | None:
        return self._waiting[0] if self._waiting else None

    def take(self, limits: WorkerLimits) -> WorkerProcess | None:
        return self._waiting.popleft().take(limits) if self._waiting else None

    def begin(self, limits: WorkerLimits, count: int = 1) -> None:
        """Begin to make warm workers for later forks with these limits, without a GPU's context,
        until there are `count`."""
        if not self._may_wait():
            return
        for waiting in list(self._waiting):
            failed = waiting.worker is None and not waiting.in_the_making
            if failed or waiting.limits != limits:
                self._waiting.remove(waiting)
                waiting.end()
        while len(self._waiting) < count:
            new = WarmWorker(limits, self._device, lambda: self._fork(limits), self._making)
            self._waiting.append(new)

    def prepare(self, limits: WorkerLimits, then: Callable[[], None] = lambda: None) -> None:
        """Have a warm worker made for the next fork with these limits, with the context.

        `then` is called once nothing is in the making, here or in another thread.
        """
        try:
            self.begin(limits)
            if self._waiting:
                self._waiting[0].finish()
        finally:
            if self._waiting:
                self._making.submit(then)
            else:
                then()

    def settle(self) -> None:
        for waiting in self._waiting:
            waiting.settle()

    def settle_context(self) -> None:
        for waiting in self._waiting:
            waiting.settle_context()

    def drop(self) -> bool:
        dropped, self._waiting = self._waiting, deque()
        for waiting in dropped:
            waiting.end()
        return bool(dropped)

    def close(self) -> None:
        self.drop()
        self._making.shutdown()
