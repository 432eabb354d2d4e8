"""What has been spent on each problem, and when that is enough. The same for every strategy."""

from __future__ import annotations

import threading
from collections import defaultdict

from agent.config.run_config import RunConfig
from agent.record.progress import Progress
from agent.record.result import Spent, Stop
from problems.errors import UsageError


def exhausted(config: RunConfig, spent: Spent) -> Stop | None:
    """The first limit that `spent` has reached; None while another call may be bought.

    Limits are looked at between calls, so the last call may overshoot tokens, dollars or seconds;
    with several samples in flight, by one call each. With `budget_usd`, a call without a known
    price ends the problem unless `allow_unpriced` says that it counts as nothing.
    """
    if spent.calls >= config.budget:
        return Stop.CALLS
    if config.budget_tokens is not None and spent.tokens >= config.budget_tokens:
        return Stop.TOKENS
    if config.budget_usd is not None:
        if spent.unpriced and not config.allow_unpriced:
            return Stop.UNPRICED
        if spent.priced_usd >= config.budget_usd:
            return Stop.USD
    if config.budget_seconds is not None and spent.wall_seconds >= config.budget_seconds:
        return Stop.SECONDS
    return None


def refuse_unpriced(config: RunConfig, *, price_known: bool) -> None:
    """Raise `UsageError` where dollars are limited and nobody knows what a call costs."""
    if config.budget_usd is not None and not price_known and not config.allow_unpriced:
        raise UsageError(
            f"--budget-usd needs a known price and {config.model} has none; add --allow-unpriced"
            " to run without that limit being kept, or limit --budget-tokens instead"
        )


class Ledger:
    """What each problem has spent so far, over all its samples. Safe to use from threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spent: defaultdict[str, Spent] = defaultdict(Spent)

    def charge(self, problem: str, amount: Spent) -> None:
        """Add to a problem's account."""
        with self._lock:
            self._spent[problem] += amount

    def spent(self, problem: str) -> Spent:
        """A problem's account."""
        with self._lock:
            return self._spent[problem]


def is_stale(config: RunConfig, progress: Progress) -> bool:
    """`--stop-early N`: the last N turns brought no better kernel than those before."""
    if config.stop_early is None:
        return False
    return progress.turns_since_best >= config.stop_early


def is_near_sol(config: RunConfig, progress: Progress) -> bool:
    """`--stop-near-sol SHARE`: the best kernel reaches that share of the speed of light."""
    if config.stop_near_sol is None or progress.best is None:
        return False
    timing = progress.best.evaluation.timing
    reached = timing.sol_fraction if timing else None
    return reached is not None and reached >= config.stop_near_sol
