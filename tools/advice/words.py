"""Advice, and what became of it, in lines for a prompt."""

from __future__ import annotations

from collections.abc import Sequence

from tools.advice.rules import RULES
from tools.advice.score import time_change
from tools.advice.units import unit
from tools.profiling.profile_report import Advice, AdviceScore

FASTER = -0.02
"""A change of time closer to 0 than this is reported as none."""


def advice_lines(advice: Sequence[Advice]) -> list[str]:
    """A numbered line for each piece of advice; empty where there is none."""
    return [f"{number}. {_words(piece)}" for number, piece in enumerate(advice, 1)]


def moved_words(scores: Sequence[AdviceScore]) -> str:
    """The figures that moved as advised, for a cell of a table; empty where none did."""
    return ", ".join(_course(score) for score in scores if score.moved)


def in_vain(scores: Sequence[AdviceScore]) -> frozenset[str]:
    """The rules whose advice was followed, and the time did not fall."""
    return frozenset(
        score.rule
        for score in scores
        if score.moved and (change := time_change(score)) is not None and change >= FASTER
    )


def score_lines(scores: Sequence[AdviceScore]) -> list[str]:
    """A line for each piece of advice of the turn before, failed predictions included."""
    return [_outcome(score) for score in scores]


def _words(advice: Advice) -> str:
    figure = unit(advice.figure)
    return (
        f"{advice.evidence} {advice.change} Could save up to {100 * advice.gain:.0f} % of the time;"
        f" watch: {figure.words} should go {advice.direction} from {figure.format(advice.before)}."
    )


def _outcome(score: AdviceScore) -> str:
    change = time_change(score)
    time = "" if change is None else f", time {100 * change:+.0f} %"
    figure = unit(score.figure)
    if score.after is None or score.moved is None:
        return f"{score.rule}: {figure.words} is not known for this kernel{time}."
    course = f"{_course(score)}{time}"
    if not score.moved and change is not None and change < FASTER:
        return f"{score.rule}: {course}: faster, by other means than this figure."
    if not score.moved:
        return f"{score.rule} was not followed, or had no effect: {course}."
    action = f"you {RULES[score.rule].done}" if score.rule in RULES else score.rule
    if change is None or change < FASTER:
        return f"{action}: {course}."
    return (
        f"{action}: {course}: as predicted, and the time did not fall, so something else limits it."
    )


def _course(score: AdviceScore) -> str:
    figure = unit(score.figure)
    after = "n/a" if score.after is None else figure.format(score.after)
    return f"{figure.words} {figure.format(score.before)} -> {after}"
