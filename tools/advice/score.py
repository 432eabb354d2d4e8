"""Whether a piece of advice came true: the figure that it named, in the next profile."""

from __future__ import annotations

from tools.advice.units import unit
from tools.profiling.profile_report import Advice, AdviceScore, Direction, Profile


def has_moved(advice: Advice, after: float) -> bool:
    """Whether the figure changed as predicted, by more than the margin of its unit."""
    change = after - advice.before
    forward = change if advice.direction is Direction.UP else -change
    return forward > unit(advice.figure).margin(advice.before)


def score(advice: Advice, before: Profile, after: Profile) -> AdviceScore:
    """Compare two profiles of one problem, the later of which followed the advice, or did not.

    Figures of two different tiers are not compared: `moved` is None.
    """
    found = after.figures.get(advice.figure) if before.rung is after.rung else None
    return AdviceScore(
        rule=advice.rule,
        figure=advice.figure,
        direction=advice.direction,
        before=advice.before,
        after=found,
        moved=None if found is None else has_moved(advice, found),
        latency_before_us=before.latency_us,
        latency_after_us=after.latency_us,
        predicted_gain=advice.gain,
    )


def time_change(score: AdviceScore) -> float | None:
    """Change of the time as a share of the time before: -0.23 is 23 % less."""
    if not score.latency_before_us or score.latency_after_us is None:
        return None
    return score.latency_after_us / score.latency_before_us - 1.0
