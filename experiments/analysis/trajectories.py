"""How turns that build on each other went: from status to status, and the turn of the best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from evaluator.evaluation import Status
from evaluator.record import Record
from experiments.analysis.equal_budget import by_search
from experiments.analysis.outcomes import outcomes

if TYPE_CHECKING:
    import pandas as pd

ORDER = tuple(status.value for status in Status)
"""Statuses from the furthest from a kernel to a correct one."""


class Step(Record):
    """How often a turn with one status was followed by one with another, in the same sample."""

    status: str
    next_status: str
    count: int


class Trajectories(Record):
    """How the turns of a condition went, by the figures of the search."""

    first: dict[str, int]
    """Statuses of first calls: of the drafts, where they are shared."""
    steps: tuple[Step, ...]
    """None for samples, which have no next turn."""
    best_found_at: tuple[int, ...]
    """Of problems and seeds with a timed correct kernel, how many found their best at each call,
    the first call first."""


def trajectories(runs: Sequence[pd.DataFrame], problems: Sequence[str]) -> Trajectories:
    """Sum up `runs` (one a seed) of one condition."""
    searched = [by_search(turns) for turns in runs]
    counts = Counter(step for turns in searched for step in _steps(turns))
    reached = [outcomes(run, problems) for run in searched]
    best = [each.speedup.argmax(axis=1)[each.speedup.max(axis=1) > 0] for each in reached]
    calls = max(each.calls for each in reached)
    first = Counter(status for run in searched for status in run[run["call"] == 0]["status"])
    return Trajectories(
        first={status: first[status] for status in ORDER if first[status]},
        steps=tuple(
            Step(status=before, next_status=after, count=counts[before, after])
            for before in ORDER
            for after in ORDER
            if counts[before, after]
        ),
        best_found_at=tuple(np.bincount(np.concatenate(best), minlength=calls).tolist()),
    )


def _steps(turns: pd.DataFrame) -> Iterator[tuple[str, str]]:
    for _, sample in turns.sort_values("turn").groupby(["problem", "sample"]):
        statuses = list(sample["status"])
        yield from pairwise(statuses)
