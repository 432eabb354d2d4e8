"""The judges of a machine, one a device, and which waiting candidate goes to which of them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum

from evaluator.errors import DeviceError, JudgeDiedError
from evaluator.ipc.service import Service
from evaluator.judge.kept_problems import MOST_PROBLEMS

_PATIENCE = 8
"""Times that others may go before one that came earlier, since their problem is set up."""
_MOST_FAILURES = 3
"""In a row, after which a judge gets nothing more while another one works."""


class Rank(IntEnum):
    """Who goes first: nothing of a later rank begins where one of an earlier rank waits."""

    TURN = 0
    """Turns, and checks of problems before their first prompt."""
    LATER = 1
    """Second verdicts, and problems that are set up ahead."""
    AUDIT = 2
    """Of a second verdict: ended where a turn or a profiler comes, and repeated later."""


@dataclass(eq=False)
class DeviceSlot:
    device: str
    judge: Service
    judging: bool = False
    ends: bool = False
    """What it judges is to be ended where a turn comes, and was not told so yet."""
    profilers: int = 0
    """Profilers that use the device or wait for its lock."""
    profiles: int = 0
    set_up: deque[str] = field(default_factory=lambda: deque(maxlen=MOST_PROBLEMS))
    """The references judged last, each once: what is set up. To be wrong costs time only."""
    failures: int = 0
    """In a row."""
    on_trial: bool = False
    """It failed last time: others first, until one of them has done its work."""

    def end_audit(self) -> None:
        if self.ends:
            self.ends = False
            self.judge.break_off()

    def forget_all_but(self, kept: int) -> None:
        """Its judge has kept `kept` problems set up, those of the last references."""
        while len(self.set_up) > kept:
            self.set_up.popleft()


@dataclass(eq=False)
class _Waiting:
    reference: str
    rank: Rank
    patience: int = _PATIENCE
    slot: DeviceSlot | None = None
    called: threading.Event = field(default_factory=threading.Event)


class DeviceSlots:
    """Gives each waiting candidate a judge as soon as one is free. Safe for several threads.

    No device has candidates of its own: a free one takes the next. Among several free
    judges goes first the one that has the problem set up, and among several waiting candidates of
    the first rank the one whose problem is set up at a free judge, as long as none is passed over
    too often. Beside a profiler only turns are judged.
    """

    def __init__(self, slots: Sequence[DeviceSlot]) -> None:
        self._slots = tuple(slots)
        self._lock = threading.Lock()
        self._waiting: list[_Waiting] = []

    def __iter__(self) -> Iterator[DeviceSlot]:
        return iter(self._slots)

    @contextmanager
    def taken(self, reference: str, rank: Rank = Rank.TURN) -> Iterator[DeviceSlot]:
        """Reserve a judge for one candidate for `reference`; waits for one.

        A `JudgeDiedError` or `DeviceError` that passes through is counted against this judge.
        """
        waiting = _Waiting(reference, rank)
        with self._lock:
            self._waiting.append(waiting)
            self._call()
            if waiting.slot is None and rank is Rank.TURN:
                # One for each that waits.
                for slot in [slot for slot in self._slots if slot.ends][:1]:
                    slot.end_audit()
        failed = False
        try:
            waiting.called.wait()
            assert waiting.slot is not None
            yield waiting.slot
        except (JudgeDiedError, DeviceError):
            failed = True
            raise
        finally:
            with self._lock:
                if waiting.slot is None:  # interrupted while it waited
                    self._waiting.remove(waiting)
                else:
                    self._leave(waiting.slot, failed=failed)
                self._call()

    @contextmanager
    def for_profiler(self) -> Iterator[str]:
        """The least busy device, for work that takes the device's lock by itself; never waits."""
        with self._lock:
            slot = min(self._healthy(), key=lambda s: (s.profilers + s.judging, s.profiles))
            slot.profilers += 1
            slot.profiles += 1
            slot.end_audit()
        try:
            yield slot.device
        finally:
            with self._lock:
                slot.profilers -= 1
                self._call()

    def _healthy(self) -> Sequence[DeviceSlot]:
        """Those to be given out: all, where all are in trouble."""
        healthy = [s for s in self._slots if not s.on_trial and s.failures < _MOST_FAILURES]
        return healthy or self._slots

    def _call(self) -> None:
        while self._waiting:
            rank = min(each.rank for each in self._waiting)
            free = [
                slot
                for slot in self._healthy()
                if not slot.judging and (rank is Rank.TURN or not slot.profilers)
            ]
            if not free:
                return
            waiting = self._next([each for each in self._waiting if each.rank is rank], free)
            self._waiting.remove(waiting)
            slot = min(
                free, key=lambda s: (waiting.reference not in s.set_up, s.profilers, len(s.set_up))
            )
            slot.judging, slot.ends = True, rank is Rank.AUDIT
            if waiting.reference in slot.set_up:
                slot.set_up.remove(waiting.reference)
            slot.set_up.append(waiting.reference)
            waiting.slot = slot
            waiting.called.set()

    def _next(self, line: Sequence[_Waiting], free: Sequence[DeviceSlot]) -> _Waiting:
        first = line[0]
        if first.patience <= 0:
            return first
        known = {reference for slot in free for reference in slot.set_up}
        chosen = next((each for each in line if each.reference in known), first)
        for passed in line[: line.index(chosen)]:
            passed.patience -= 1
        return chosen

    def _leave(self, slot: DeviceSlot, *, failed: bool) -> None:
        slot.judging = slot.ends = False
        if failed:
            slot.failures += 1
            slot.on_trial = True
            slot.set_up.clear()  # a judge that died forgot them
            return
        slot.failures = 0
        for each in self._slots:
            each.on_trial = False
