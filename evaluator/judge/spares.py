"""Workers that wait for candidates: as many as one of them will need, one after the other."""

from __future__ import annotations

import threading
from collections.abc import Callable

from evaluator.judge.process import WorkerProcess
from evaluator.judge.spare import Spare
from evaluator.judge.worker_limits import WorkerLimits


class Spares:
    """Those of one zygote. For one thread, as the zygote is."""

    def __init__(self, device: str, fork: Callable[[WorkerLimits], WorkerProcess]) -> None:
        """`device`: whose contexts they make. `fork` may raise `InfrastructureError`."""
        self._device = device
        self._fork = fork
        self._waiting: list[Spare] = []

    @property
    def waiting(self) -> tuple[Spare, ...]:
        """Those there are, made or in the making."""
        return tuple(self._waiting)

    def take(self, limits: WorkerLimits) -> WorkerProcess | None:
        """A worker with these limits that answers, one that is made rather than one in the making;
        None where there is none."""
        while self._waiting:
            chosen = next((spare for spare in self._waiting if spare.made), self._waiting[0])
            self._waiting.remove(chosen)
            worker = chosen.take(limits)
            if worker is not None:
                return worker
        return None

    def begin(self, limits: WorkerLimits, count: int = 1) -> None:
        """Have that many with these limits in the making, but for a GPU's context, or made."""
        for spare in self.waiting:
            if spare.failed or spare.limits != limits:
                self._waiting.remove(spare)
                spare.end()
        while len(self._waiting) < count:
            self._waiting.append(Spare(limits, self._device, lambda: self._fork(limits)))

    def finish(self, then: Callable[[], None]) -> None:
        """Have all of them made, with the context. `then` is called once nothing is in the making,
        by whatever thread that is."""
        if not self._waiting:
            then()
        left, counting = len(self._waiting), threading.Lock()

        def one_is_made() -> None:
            nonlocal left
            with counting:
                left -= 1
                done = left == 0
            if done:
                then()

        for spare in self.waiting:
            spare.finish(one_is_made)

    def settle(self) -> None:
        """Wait until nothing is in the making."""
        for spare in self._waiting:
            spare.settle()

    def drop(self) -> bool:
        """End them all; whether there were any."""
        dropped, self._waiting = self._waiting, []
        for spare in dropped:
            spare.end()
        return bool(dropped)
