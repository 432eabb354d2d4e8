"""What one run reached and spent: for the run as a whole, and problem by problem."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from experiments.analysis.interval import Interval, interval_of
from experiments.analysis.measures import MEASURES, Unit
from experiments.analysis.outcomes import outcomes
from experiments.analysis.run_facts import LoadedRun, RunFacts
from experiments.analysis.statistics import Resamples

if TYPE_CHECKING:
    import pandas as pd


class FigureReport(BaseModel):
    """One figure of a run."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    figure: str
    label: str
    unit: Unit
    problems: int
    """How many problems the figure is over."""
    estimate: Interval | None
    """None: unknown."""


class ProblemReport(BaseModel):
    """One problem of a run."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

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
    tokens: int
    cost_usd: float | None
    seconds_wall: float
    seconds_device: float


class RunReport(BaseModel):
    """One run."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True, populate_by_name=True)

    schema_: int = Field(default=1, alias="schema")
    facts: RunFacts
    figures: tuple[FigureReport, ...]
    statuses: dict[str, int]
    """Calls by status, the most frequent first."""
    problems: tuple[ProblemReport, ...]

    def figure(self, key: str) -> FigureReport:
        """The figure of that key (see `experiments.analysis.measures`)."""
        return next(figure for figure in self.figures if figure.figure == key)


def report_on(run: LoadedRun, *, seed: int = 0) -> RunReport:
    """Sum up a run; every problem that it began counts, solved or not."""
    return RunReport(
        facts=run.facts,
        figures=tuple(_figures(run, seed)),
        statuses={str(name): int(n) for name, n in run.turns["status"].value_counts().items()},
        problems=tuple(_problem(turns) for _, turns in run.turns.groupby("problem", sort=False)),
    )


def _figures(run: LoadedRun, seed: int) -> Iterator[FigureReport]:
    reached = outcomes(run.turns)
    for measure in MEASURES:
        table = measure.table(reached)
        covered = measure.covered(table)
        estimate = None
        if covered.any():
            resamples = Resamples.of(int(covered.sum()), seed=seed)
            estimate = interval_of(measure.estimates(table[covered, -1:], resamples)[0])
        yield FigureReport(
            figure=measure.key,
            label=measure.label,
            unit=measure.unit,
            problems=int(covered.sum()),
            estimate=estimate,
        )


def _problem(turns: pd.DataFrame) -> ProblemReport:
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
        compile_speedup=None if best is None else _known(best["compile_speedup"]),
        sol_fraction=None if best is None else _known(best["sol_fraction"]),
        sol_score=None if best is None else _known(best["sol_score"]),
        bottleneck="" if best is None else best["bottleneck"],
        best_call=None if best is None else int(best["call"]) + 1,
        candidate="" if best is None else best["candidate"],
        tokens=int(turns["tokens"].sum()),
        cost_usd=_known(turns["cost_usd"].sum(skipna=False)),
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


def _known(value: float) -> float | None:
    return None if value != value else float(value)
