"""When a problem ends before its budget is spent."""

from __future__ import annotations

from agent.config.run_config import RunConfig
from agent.record.progress import Progress


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
