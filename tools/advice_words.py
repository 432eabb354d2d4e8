"""Advice, and what became of it, in lines for a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tools.advice import Advice, AdviceScore
from tools.advice_score import time_change
from tools.advice_units import unit

if TYPE_CHECKING:
    from tools.profile_report import Profile

FASTER = -0.02
"""A change of time closer to 0 than this is told as none."""


def advice_lines(profile: Profile) -> list[str]:
    """A line for each piece of advice, numbered, most to gain first; empty where there is none."""
    return [f"{number}. {_told(advice)}" for number, advice in enumerate(profile.advice, 1)]


def score_lines(scores: Sequence[AdviceScore]) -> list[str]:
    """A line for each piece of advice of the turn before, failed predictions included."""
    return [_outcome(score) for score in scores]


def _told(advice: Advice) -> str:
    figure = unit(advice.figure)
    return (
        f"{advice.evidence} {advice.change} Could save up to {100 * advice.gain:.0f} % of the time;"
        f" watch: {figure.words} should go {advice.direction} from {figure.told(advice.before)}."
    )


def _outcome(score: AdviceScore) -> str:
    change = time_change(score)
    time = "" if change is None else f", time {100 * change:+.0f} %"
    figure = unit(score.figure)
    if score.after is None or score.moved is None:
        return f"{score.rule}: {figure.words} is not known for this kernel{time}."
    course = f"{figure.words} {figure.told(score.before)} -> {figure.told(score.after)}{time}"
    if not score.moved:
        return f"{score.rule}: not followed, or without effect: {course}."
    if change is None or change < FASTER:
        return f"{score.rule}: it worked: {course}."
    return f"{score.rule}: the figure moved as predicted and the time did not fall: {course}."
