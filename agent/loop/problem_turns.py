"""Which turn of a problem comes next. Each is handed out once, to one thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from agent.config.run_config import RunConfig
from agent.config.schedule import Place, schedule_of
from agent.loop.budget import Ledger, exhausted, is_near_sol, is_stale
from agent.record.progress import rank
from agent.record.result import Stop
from agent.record.store import RunStore
from agent.record.turn_log import TurnKey


@dataclass
class ProblemTurns:
    """The turns of one problem that are left. What comes next follows from what is recorded."""

    config: RunConfig
    problem: str
    store: RunStore
    ledger: Ledger
    stop: threading.Event
    changed: threading.Condition
    """Notified when a turn is handed out: others may be ready then. All problems of a run share
    it."""
    _handed_out: set[Place] = field(default_factory=set)
    _kept: tuple[int, ...] = ()
    _closed: bool = False

    def claim(self) -> TurnKey | None:
        """The next turn, for the calling thread; None where none can begin now."""
        with self.changed:
            place = next(self._claimable(), None)
            if place is None:
                return None
            self._handed_out.add(place)
            self.changed.notify_all()
            return TurnKey(self.problem, *place)

    def close(self) -> None:
        """Hand out no further turn."""
        self._closed = True

    @property
    def has_work(self) -> bool:
        """Whether some turn is to be taken or finished."""
        return next(self._claimable(), None) is not None

    def call_of(self, key: TurnKey) -> int:
        """Running index of a turn over all samples of the problem."""
        return schedule_of(self.config).call((key.sample, key.turn), self._kept_drafts())

    def why_stop(self) -> Stop | None:
        """Why the problem gets no further call; None while it does."""
        if limit := exhausted(self.config, self.ledger.spent(self.problem)):
            return limit
        progress = self.store.log.progress(self.problem)
        if is_near_sol(self.config, progress):
            return Stop.NEAR_SOL
        if is_stale(self.config, progress):
            return Stop.EARLY
        return Stop.INTERRUPTED if self.stop.is_set() else None

    def _claimable(self) -> Iterator[Place]:
        """A turn whose answer is paid for is finished in any case; a new one needs a budget."""
        if self._closed or self.stop.is_set():
            return
        stopped = self.why_stop() is not None
        recorded = self.store.log.places(self.problem)
        for place in schedule_of(self.config).ready(recorded, self._kept_drafts()):
            if place not in self._handed_out and (not stopped or self._is_paid(place)):
                yield place

    def _is_paid(self, place: Place) -> bool:
        pending = self.store.pending_turn(TurnKey(self.problem, *place))
        return pending is not None and self.store.has_completion(pending.completion)

    def _kept_drafts(self) -> Sequence[int]:
        """The samples that are refined, the best first; empty while a draft is missing."""
        schedule, recorded = schedule_of(self.config), self.store.log.places(self.problem)
        if self._kept or schedule.turns == 1:
            return self._kept
        if all((sample, 0) in recorded for sample in range(schedule.drafts)):
            drafts = [turn for turn in self.store.log.of(self.problem) if turn.turn == 0]
            ranked = sorted(drafts, key=rank)
            self._kept = tuple(draft.sample for draft in ranked[: schedule.refined])
        return self._kept
