"""What one run reached and spent: for the run as a whole, and problem by problem."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from evaluator.record import Record
from experiments.analysis.arrays import BoolArray, FloatArray
from experiments.analysis.measures import BY_CALL, MEASURES, Measure, Unit, last_values
from experiments.analysis.outcomes import Outcomes, outcomes
from experiments.analysis.run_facts import LoadedRun, RunFacts
from experiments.analysis.statistics import Interval, Resamples, finite, interval_of, whole

if TYPE_CHECKING:
    import pandas as pd


class FigureReport(Record):
    figure: str
    label: str
    unit: Unit
    problems: int
    """How many problems the figure is over."""
    estimate: Interval | None

    @property
    def is_share_of_problems(self) -> bool:
        return self.figure.startswith(("fast_", "clear_"))


class Group(Record):
    """The problems of one level or category."""

    name: str
    problems: int
    figures: tuple[FigureReport, ...]
    """fast_0, fast_1 and the geometric mean, where a failure counts 1."""


class AtK(Record):
    """What k samples a problem would have reached, on average over all choices of k. By the
    figures of the search: nobody judged each choice's best kernel again."""

    k: int
    correct: Interval | None
    """pass@k: some of them is correct."""
    faster: Interval | None
    """Some of them is correct and faster than eager."""
    best: Interval | None
    """Geometric mean of the best speedup, at least 1."""


class ProblemReport(Record):
    problem: str
    level: int
    category: str
    calls: int
    correct: int
    """Calls whose answer was a correct kernel."""
    speedup: Interval | None
    """Of the best correct kernel over eager, as measured; by its second verdict where there is one.
    None: no correct, timed kernel."""
    verdict: str
    compile_speedup: float | None
    """Of that kernel over torch.compile; None: not measured."""
    sol_fraction: float | None
    sol_score: float | None
    """SOL-ExecBench's score of that kernel; None: recorded by an older version, or no bound."""
    bottleneck: str
    """Of that kernel, as its profile says; empty: not profiled."""
    best_call: int | None
    """The call that found it, from 1."""
    candidate: str
    tokens: int | None
    """None: nobody counted."""
    cost_usd: float | None
    seconds_wall: float
    seconds_device: float


class RunReport(Record):
    schema_: int = Field(default=1, alias="schema")
    facts: RunFacts
    figures: tuple[FigureReport, ...]
    statuses: dict[str, int]
    levels: tuple[Group, ...]
    categories: tuple[Group, ...]
    """Empty where all problems are of one level."""
    at_k: tuple[AtK, ...]
    """Of independent samples only."""
    problems: tuple[ProblemReport, ...]

    def figure(self, key: str) -> FigureReport:
        return next(figure for figure in self.figures if figure.figure == key)


def report_on(run: LoadedRun, *, seed: int = 0) -> RunReport:
    """Sum up a run; every problem that it began counts, solved or not."""
    reached = outcomes(run.turns)
    return RunReport(
        facts=run.facts,
        figures=tuple(figure_report([reached], measure, seed) for measure in MEASURES),
        statuses={str(name): int(n) for name, n in run.turns["status"].value_counts().items()},
        levels=tuple(groups([run.turns], "level", seed)),
        categories=tuple(groups([run.turns], "category", seed)),
        at_k=tuple(at_k_figures([reached], seed)) if run.facts.strategy == "sample" else (),
        problems=tuple(
            problem_report(turns) for _, turns in run.turns.groupby("problem", sort=False)
        ),
    )


def figure_report(reached: Sequence[Outcomes], measure: Measure, seed: int) -> FigureReport:
    """Over the same problems of several runs, one a seed: a problem's value is the mean of those
    that the measure covers."""
    values = last_values(measure, reached)
    known = ~np.isnan(values) if measure.absent == "left out" else np.ones_like(values, dtype=bool)
    sums, counts = np.where(known, values, 0.0).sum(axis=1), known.sum(axis=1)
    table = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)[:, None]
    covered = measure.covered(table)
    estimate = None
    if covered.any():
        resamples = Resamples.of(int(covered.sum()), seed=seed)
        estimate = interval_of(measure.estimates(table[covered], resamples)[0])
    return FigureReport(
        figure=measure.key,
        label=measure.label,
        unit=measure.unit,
        problems=int(covered.sum()),
        estimate=estimate,
    )


def groups(
    runs: Sequence[pd.DataFrame], column: Literal["level", "category"], seed: int
) -> Iterator[Group]:
    """Of runs over the same problems, one a seed. Nothing where there is one group alone."""
    of = dict(zip(runs[0]["problem"], runs[0][column], strict=True))
    names = sorted(set(of.values()))
    for name in names if len(names) > 1 else ():
        inside = [problem for problem in of if of[problem] == name]
        reached = [outcomes(turns, inside) for turns in runs]
        yield Group(
            name=str(name) or "none",
            problems=len(inside),
            figures=tuple(figure_report(reached, measure, seed) for measure in BY_CALL),
        )


def at_k_figures(runs: Sequence[Outcomes], seed: int) -> Iterator[AtK]:
    """For k of 1, 2, 4, ... and all; the mean over `runs` of the same problems.

    pass@k and best@k average over all subsets of k answers, so they use every answer and have no
    bias (Chen et al. 2021, arXiv 2107.03374, for pass@k). They suit samples, not turns that build
    on each other. A call that was not made counts as one without a kernel.
    """
    resamples = Resamples.of(len(runs[0].problems), seed=seed)
    calls = min(reached.calls for reached in runs)
    powers = (2**power for power in range(calls.bit_length()))
    for k in dict.fromkeys((*powers, calls)):
        correct = np.mean([pass_at_k(each.correct, k) for each in runs], axis=0)
        faster = np.mean([pass_at_k(each.speedup > 1, k) for each in runs], axis=0)
        kept = [np.log(np.maximum(each.speedup, 1.0)) for each in runs]
        best = np.mean([best_at_k(values, k) for values in kept], axis=0)
        yield AtK(
            k=k,
            correct=interval_of(resamples.share(correct)),
            faster=interval_of(resamples.share(faster)),
            best=interval_of(resamples.mean(best).exp()),
        )


def pass_at_k(hits: BoolArray, k: int) -> FloatArray:
    """For each problem the chance that some of k answers hits, shape (problems,).

    `hits`: shape (problems, n). Raises `ValueError` where k is not in 1..n.
    """
    return best_at_k(hits.astype(float), k)


def best_at_k(values: FloatArray, k: int) -> FloatArray:
    """For each problem the expected highest value of k answers, shape (problems,).

    `values`: shape (problems, n). Raises `ValueError` where k is not in 1..n.
    """
    answers = values.shape[1]
    if not 1 <= k <= answers:
        raise ValueError(f"k = {k}, and there are {answers} answers")
    # Of the subsets of k, so many have the i-th smallest value as their highest.
    highest = [math.comb(place, k - 1) for place in range(answers)]
    chances = np.array([count / math.comb(answers, k) for count in highest])
    return np.asarray(np.sort(values, axis=1) @ chances, dtype=float)


def problem_report(turns: pd.DataFrame) -> ProblemReport:
    first = turns.iloc[0]
    best = _best(turns)
    return ProblemReport(
        problem=first["problem"],
        level=first["level"],
        category=first["category"],
        calls=len(turns),
        correct=int((turns["status"] == "correct").sum()),
        speedup=None
        if best is None
        else Interval(value=best["speedup"], low=best["speedup_low"], high=best["speedup_high"]),
        verdict="" if best is None else best["verdict"],
        compile_speedup=None if best is None else finite(best["compile_speedup"]),
        sol_fraction=None if best is None else finite(best["sol_fraction"]),
        sol_score=None if best is None else finite(best["sol_score"]),
        bottleneck="" if best is None else best["bottleneck"],
        best_call=None if best is None else int(best["call"]) + 1,
        candidate="" if best is None else best["candidate"],
        tokens=whole(turns["tokens"].sum(skipna=False)),
        cost_usd=finite(turns["cost_usd"].sum(skipna=False)),
        seconds_wall=float(turns["seconds_wall"].sum()),
        seconds_device=float(turns["seconds_device"].sum()),
    )


def _best(turns: pd.DataFrame) -> pd.Series | None:
    """The turn of the best kernel, with the figures of its second verdict where there is one."""
    held = turns[turns["confirmed_speedup"].notna()]
    if len(held):
        best = held.iloc[-1].copy()
        for name in ("speedup", "speedup_low", "speedup_high", "verdict"):
            best[name] = best[f"confirmed_{name.removeprefix('speedup_')}"]
        return best
    timed = turns[turns["speedup"].notna() & ~turns["struck"]]
    return timed.iloc[int(timed["speedup"].argmax())] if len(timed) else None
