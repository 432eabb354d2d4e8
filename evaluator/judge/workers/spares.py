"""The workers that are made before their candidates are there."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable

from evaluator.judge.workers.process import WorkerProcess
from evaluator.judge.workers.spare import Spare
from evaluator.judge.workers.worker_limits import WorkerLimits


class Spares:
    """They are made one after the other and handed out in that order. Only the first gets the
    context of a GPU, which takes memory there."""

    def __init__(
        self,
        device: str,
        fork: Callable[[WorkerLimits], WorkerProcess],
        may_wait: Callable[[], bool],
    ) -> None:
        """`device`: whose context a spare makes. Where none `may_wait`, because a candidate could
        reach it, there is none, and a fork takes as long as it takes."""
        self._device = device
        self._fork = fork
        self._may_wait = may_wait
        self._waiting: deque[Spare] = deque()

    @property
    def first(self) -> Spare | None:
        """The one that is handed out next."""
        return self._waiting[0] if self._waiting else None

    def take(self, limits: WorkerLimits) -> WorkerProcess | None:
        """The first one, if it has these limits."""
        return self._waiting.popleft().take(limits) if self._waiting else None

    def begin(self, limits: WorkerLimits, count: int = 1) -> None:
        """Begin to make spares for later forks with these limits, but for a GPU's context, until
        there are so many."""
        if not self._may_wait():
            return
        for spare in list(self._waiting):
            if spare.failed or spare.limits != limits:
                self._waiting.remove(spare)
                spare.end()
        while len(self._waiting) < count:
            last = self._waiting[-1] if self._waiting else None
            self._waiting.append(Spare(limits, self._device, lambda: self._fork(limits), last))

    def prepare(self, limits: WorkerLimits, then: Callable[[], None] = lambda: None) -> None:
        """Have a spare made for the next fork with these limits, with the context.

        `then` is called once nothing is in the making, here or in another thread.
        """
        with contextlib.ExitStack() as after:
            after.callback(then)
            self.begin(limits)
            if self._waiting:
                first, *others = self._waiting
                for spare in others:
                    after.callback(spare.settle)
                first.finish(after.pop_all().close)

    def settle(self) -> None:
        """Wait until nothing is in the making: nothing of ours disturbs what is timed now."""
        for spare in self._waiting:
            spare.settle()

    def settle_context(self) -> None:
        """Wait until nothing takes memory of the device."""
        for spare in self._waiting:
            spare.settle_context()

    def drop(self) -> bool:
        """End them; whether there were any."""
        dropped, self._waiting = self._waiting, deque()
        for spare in dropped:
            spare.end()
        return bool(dropped)
