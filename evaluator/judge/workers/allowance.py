"""How long one candidate may keep the judge, in all its workers together: waiting, and reading."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from evaluator.evaluation import Status
from evaluator.judge.rejection import Rejection
from evaluator.reason import Reason

_LIMIT_S = 45.0
"""For all replies together, beyond what is usual for each of them."""
_USUAL_S, _USUAL_BYTES_PER_S = 0.1, 1e8


@dataclass
class Allowance:
    limit_s: float = math.inf
    """Of imports, constructors and calls, without builds."""
    spent_s: float = 0.0
    _left_s: float = field(default_factory=lambda: _LIMIT_S)

    @property
    def left_s(self) -> float:
        return max(0.0, self.limit_s - self.spent_s)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        begin = time.monotonic()
        try:
            yield
        finally:
            self.spent_s += time.monotonic() - begin

    @contextmanager
    def handling(self, size: int) -> Iterator[None]:
        """While the main thread looks at a reply with so many bytes of outputs; raises `Rejection`
        there, whatever it is at, once that takes too long."""
        end = time.monotonic() + _USUAL_S + size / _USUAL_BYTES_PER_S
        before = signal.signal(signal.SIGALRM, _break_off)
        signal.setitimer(signal.ITIMER_REAL, end - time.monotonic() + self._left_s)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, before)
            self._left_s = min(max(0.0, self._left_s + end - time.monotonic()), _LIMIT_S)


def _break_off(*_: object) -> None:
    message = f"looking at what its calls returned took {_LIMIT_S:g} s longer than usual"
    raise Rejection(Status.TIMEOUT, Reason.REPLY_TIMEOUT, message)
