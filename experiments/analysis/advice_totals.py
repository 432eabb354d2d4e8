"""How often each rule of advice was right, over runs."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from agent.record.run_files import RunFiles
from evaluator.record import Record
from experiments.analysis.statistics import Interval, interval_of, wilson
from experiments.runs import run_folders
from tools.advice.score import time_change
from tools.profiling.profile_report import AdviceScore


class RuleTotal(Record):
    """One rule. Shares are 0 to 1."""

    rule: str
    given: int
    """Pieces of advice in profiles, whether or not a prompt showed them to a model."""
    followed: int
    """Times that a later kernel, made from a prompt with this advice, was profiled."""
    known: int
    """Of these, how often both profiles knew the figure."""
    moved: int
    """Of these, how often it moved as predicted."""
    hit_rate: Interval | None
    """`moved` over `known`, with Wilson's interval. None: nothing is known."""
    time_change: float | None
    """Median over `followed`: -0.2 is a fifth less. None: no time is known."""
    time_change_moved: float | None
    predicted_gain: float | None
    """Mean over `followed`."""


def total_advice(paths: Iterable[Path]) -> tuple[RuleTotal, ...]:
    """Of the runs at `paths` (run directories or folders of them), the rule that was given most
    often first. Raises `UsageError`."""
    given: Counter[str] = Counter()
    scores: dict[str, list[AdviceScore]] = {}
    for folder in dict.fromkeys(folder for path in paths for folder in run_folders(path)):
        for record in RunFiles(folder).turns():
            given.update(piece.rule for piece in (record.profile.advice if record.profile else ()))
            for score in record.advice_scores:
                scores.setdefault(score.rule, []).append(score)
    rules = [_total(rule, given[rule], scores.get(rule, [])) for rule in {*given, *scores}]
    return tuple(sorted(rules, key=lambda total: (-total.given, -total.followed, total.rule)))


def _total(rule: str, given: int, scores: list[AdviceScore]) -> RuleTotal:
    known = [score for score in scores if score.moved is not None]
    moved = [score for score in known if score.moved]
    gains = [score.predicted_gain for score in scores]
    return RuleTotal(
        rule=rule,
        given=given,
        followed=len(scores),
        known=len(known),
        moved=len(moved),
        hit_rate=interval_of(wilson(len(moved), len(known))) if known else None,
        time_change=_median_change(scores),
        time_change_moved=_median_change(moved),
        predicted_gain=statistics.fmean(gains) if gains else None,
    )


def _median_change(scores: list[AdviceScore]) -> float | None:
    changes = [change for score in scores if (change := time_change(score)) is not None]
    return statistics.median(changes) if changes else None
