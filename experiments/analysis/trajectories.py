"""How turns that build on each other went: repairs, the turn of the best, plateaus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import BaseModel, ConfigDict

from evaluator.evaluation import Status
from experiments.analysis.equal_budget import by_search
from experiments.analysis.outcomes import outcomes
from experiments.analysis.statistics import Interval, Resamples, interval_of

if TYPE_CHECKING:
    import pandas as pd


ORDER = tuple(status.value for status in Status)
"""Statuses from the furthest from a kernel to a correct one."""


class Step(BaseModel):
    """How often a turn with one status was followed by one with another, in the same sample."""

    model_config = ConfigDict(frozen=True)

    status: str
    next_status: str
    count: int


class Trajectories(BaseModel):
    """How the turns of a condition went, by the figures of the search. Of `refine` only: samples
    have no next turn."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    steps: tuple[Step, ...]
    repaired_over_unbroken: Interval | None
    """Speedup of kernels that follow a failed turn over kernels of turns before any failure,
    as a ratio of geometric means within problems that have both. None: no problem has both."""
    repaired_problems: int
    """How many problems those are."""
    best_found_at: tuple[int, ...]
    """Of problems and seeds with a timed correct kernel, how many found their best at each call,
    the first call first."""
    idle_calls: float | None
    """Mean number of calls after the best one. None: there is no timed kernel."""
    plateau_share: Interval | None
    """Share of those problems whose best was found in the first half of their calls."""


def trajectories(
    runs: Sequence[pd.DataFrame], problems: Sequence[str], *, seed: int = 0
) -> Trajectories:
    """Sum up `runs` (one a seed) of one condition. `seed`: of the bootstrap."""
    import pandas as pd

    searched = [by_search(turns) for turns in runs]
    turns = pd.concat(searched, ignore_index=True)
    counts = transitions(turns)
    ratios = _repaired_over_unbroken(turns)
    ratio = None
    if len(ratios):
        found = Resamples.of(len(ratios), seed=seed).mean(ratios.to_numpy(dtype=float))
        ratio = interval_of(found.map(lambda value: float(np.exp(value))))
    reached = [outcomes(run, problems) for run in searched]
    timed = np.array([each.speedup.max(axis=1) > 0 for each in reached])
    best = np.array([each.speedup.argmax(axis=1) for each in reached])
    made = np.array([each.made.sum(axis=1) for each in reached])
    some = timed.any(axis=0)
    early = np.where(timed, best + 1 <= made / 2, np.nan)[:, some]
    return Trajectories(
        steps=tuple(
            Step(status=str(before), next_status=str(after), count=int(counts.loc[before, after]))
            for before in counts.index
            for after in counts.columns
            if counts.loc[before, after]
        ),
        repaired_over_unbroken=ratio,
        repaired_problems=len(ratios),
        best_found_at=tuple(np.bincount(best[timed], minlength=int(made.max())).tolist()),
        idle_calls=float((made - 1 - best)[timed].mean()) if timed.any() else None,
        plateau_share=interval_of(
            Resamples.of(int(some.sum()), seed=seed).share(np.nanmean(early, axis=0))
        )
        if some.any()
        else None,
    )


def _repaired_over_unbroken(turns: pd.DataFrame) -> pd.Series:
    """By problem, mean log speedup of repaired kernels less that of kernels before any failure.

    Within a problem, so that hard problems, where more turns fail, do not count against repairs.
    """
    sample = ["run", "problem", "sample"]
    ordered = turns.sort_values([*sample, "turn"], kind="stable")
    failed = (ordered["status"] != "correct").astype(int)
    failures = failed.groupby([ordered[name] for name in sample]).cumsum()
    just_failed = failed.groupby([ordered[name] for name in sample]).shift(fill_value=0) == 1
    log = np.log(ordered["speedup"])
    repaired = log[just_failed].groupby(ordered["problem"]).mean()
    unbroken = log[failures == 0].groupby(ordered["problem"]).mean()
    ratios: pd.Series = (repaired - unbroken).dropna()
    return ratios


def transitions(turns: pd.DataFrame) -> pd.DataFrame:
    """Count the steps from one turn to the next of the same sample, by status.

    Rows: the status of a turn; columns: that of the turn after it; both in `ORDER`, statuses that
    never occur left out. A run that samples has no steps: the table is empty.
    """
    import pandas as pd

    ordered = turns.sort_values(["run", "problem", "sample", "turn"], kind="stable")
    sample = [ordered["run"], ordered["problem"], ordered["sample"]]
    after = ordered["status"].groupby(sample, sort=False).shift(-1)
    stepped = after.notna()
    counts = pd.crosstab(ordered.loc[stepped, "status"], after[stepped])
    seen = [name for name in ORDER if name in counts.index or name in counts.columns]
    table = counts.reindex(index=seen, columns=seen, fill_value=0)
    return table.rename_axis(index="status", columns="next status").astype(int)
