"""Which turn of a problem comes next, and when its budget is spent: the same for every strategy."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from agent.config.run_config import RunConfig
from agent.config.schedule import Place, schedule_of
from agent.record.progress import rank
from agent.record.result import Spent, Stop
from agent.record.store import RunStore
from agent.record.turn_log import TurnKey


def exhausted(config: RunConfig, spent: Spent) -> Stop | None:
    """The first limit that `spent` has reached; None while another call may be bought.

    Limits are looked at between calls, so the last call may overshoot tokens, dollars or seconds;
    with several samples in flight, by one call each. With `budget_usd`, a call without a known
    price ends the problem unless `allow_unpriced` says that it counts as nothing.
    """
    if spent.calls >= config.budget:
        return Stop.CALLS
    if config.budget_tokens is not None and (spent.tokens or 0) >= config.budget_tokens:
        return Stop.TOKENS
    if config.budget_usd is not None:
        if spent.unpriced and not config.allow_unpriced:
            return Stop.UNPRICED
        if spent.priced_usd >= config.budget_usd:
            return Stop.USD
    if config.budget_seconds is not None and spent.wall_seconds >= config.budget_seconds:
        return Stop.SECONDS
    busy_s = config.budget_device_seconds
    if busy_s is not None and spent.device_seconds >= busy_s:
        return Stop.DEVICE_SECONDS
    return None


class Ledger:
    """What each problem has spent so far, over all its samples. Safe to use from threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spent: defaultdict[str, Spent] = defaultdict(Spent)

    def charge(self, problem: str, amount: Spent) -> None:
        with self._lock:
            self._spent[problem] += amount

    def spent(self, problem: str) -> Spent:
        with self._lock:
            return self._spent[problem]


@dataclass
class ProblemTurns:
    """The turns of one problem that are left, each taken by one thread. What comes next follows
    from what is recorded."""

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
        self._closed = True

    @property
    def has_work(self) -> bool:
        return next(self._claimable(), None) is not None

    def call_of(self, key: TurnKey) -> int:
        """Running index of a turn over all samples of the problem."""
        return schedule_of(self.config).call((key.sample, key.turn), self._kept_drafts())

    def why_stop(self) -> Stop | None:
        """Why the problem gets no further call; None while it does."""
        if limit := exhausted(self.config, self.ledger.spent(self.problem)):
            return limit
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
