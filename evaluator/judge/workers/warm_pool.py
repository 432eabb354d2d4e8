"""The workers that are made before their candidates are there."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable

from evaluator.judge.workers.process import WorkerProcess
from evaluator.judge.workers.warm_worker import WarmWorker
from evaluator.judge.workers.worker_limits import WorkerLimits


class WarmPool:
    """They are made one after the other and handed out in that order. Only the first gets the
    context of a GPU, which takes memory there."""

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

    @property
    def first(self) -> WarmWorker | None:
        return self._waiting[0] if self._waiting else None

    def take(self, limits: WorkerLimits) -> WorkerProcess | None:
        return self._waiting.popleft().take(limits) if self._waiting else None

    def begin(self, limits: WorkerLimits, count: int = 1) -> None:
        """Begin to make warm workers for later forks with these limits, without a GPU's context,
        until there are so many."""
        if not self._may_wait():
            return
        for waiting in list(self._waiting):
            if waiting.failed or waiting.limits != limits:
                self._waiting.remove(waiting)
                waiting.end()
        while len(self._waiting) < count:
            last = self._waiting[-1] if self._waiting else None
            self._waiting.append(WarmWorker(limits, self._device, lambda: self._fork(limits), last))

    def prepare(self, limits: WorkerLimits, then: Callable[[], None] = lambda: None) -> None:
        """Have a warm worker made for the next fork with these limits, with the context.

        `then` is called once nothing is in the making, here or in another thread.
        """
        with contextlib.ExitStack() as after:
            after.callback(then)
            self.begin(limits)
            if self._waiting:
                first, *others = self._waiting
                for waiting in others:
                    after.callback(waiting.settle)
                first.finish(after.pop_all().close)

    def settle(self) -> None:
        """Wait until nothing is in the making: nothing of ours disturbs what is timed now."""
        for waiting in self._waiting:
            waiting.settle()

    def settle_context(self) -> None:
        """Wait until nothing takes memory of the device."""
        for waiting in self._waiting:
            waiting.settle_context()

    def drop(self) -> bool:
        dropped, self._waiting = self._waiting, deque()
        for waiting in dropped:
            waiting.end()
        return bool(dropped)
