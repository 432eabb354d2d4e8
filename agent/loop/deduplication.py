"""Identical kernels of one problem: the first is judged and profiled, the others take that over."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from agent.record.store import RunStore
from agent.record.turn import Turn, Work
from agent.record.turn_log import TurnKey, key_of


class Deduplication:
    """Knows which turn of this run each kernel was judged, and profiled, with.

    It holds only the keys of turns. Their records, or the run directory while they are pending, say
    the rest. Safe for several threads.
    """

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._changed = threading.Condition()
        self._in_hand: set[tuple[str, str]] = set()
        self._first: dict[str, dict[tuple[str, Work], TurnKey]] = {}
        """By problem; then by kernel and work."""

    @contextmanager
    def alone(self, problem: str, kernel: str) -> Iterator[None]:
        """Work on a kernel alone; a turn with an identical one waits."""
        with self._changed:
            self._changed.wait_for(lambda: (problem, kernel) not in self._in_hand)
            self._in_hand.add((problem, kernel))
        try:
            yield
        finally:
            with self._changed:
                self._in_hand.discard((problem, kernel))
                self._changed.notify_all()

    def earlier(self, problem: str, kernel: str, work: Work) -> tuple[TurnKey, Turn] | None:
        """The turn whose evaluation (`Work.JUDGE`) or profile holds for this kernel too."""
        key = self._of(problem).get((kernel, work))
        if key is None:
            return None
        # In this order: a pending turn goes when the record is there.
        if (turn := self._store.pending_turn(key)) is not None:
            return key, turn
        turns = self._store.log.of(key.problem, key.sample)
        return next(((key, turn) for turn in turns if key_of(turn) == key), None)

    def learn(self, key: TurnKey, turn: Turn) -> None:
        first = self._of(key.problem)
        with self._changed:
            _learn(first, key, turn)

    def _of(self, problem: str) -> dict[tuple[str, Work], TurnKey]:
        with self._changed:
            if problem not in self._first:
                first = self._first[problem] = {}
                for turn in self._store.log.of(problem):
                    _learn(first, key_of(turn), turn)
            return self._first[problem]


def _learn(first: dict[tuple[str, Work], TurnKey], key: TurnKey, turn: Turn) -> None:
    if turn.candidate is None:
        return
    verdict = turn.evaluation
    if verdict is not None and verdict.is_lasting and not turn.judged_with:
        first.setdefault((turn.candidate, Work.JUDGE), key)
    if turn.profile is not None and not turn.profiled_with:
        first.setdefault((turn.candidate, Work.PROFILE), key)
