"""All that a study says, as one object: for `experiments.report`, the HTML page and notebooks."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from experiments.analysis.interval import Interval
from experiments.analysis.measures import Unit
from experiments.analysis.run_report import AtK, FigureReport
from experiments.study.answer import Answer

Currency = Literal["calls", "tokens", "cost_usd", "seconds_wall", "seconds_device"]


class CellProgress(BaseModel):
    """How far a cell has come."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    cell: str
    """Its folder below the study's; an `agent.show` or `experiments.report` away."""
    model: str
    condition: str
    seed: int
    finished: int
    """Problems that got all of their turns."""
    of_problems: int
    turns: int


class Costs(BaseModel):
    """What one solved, or one faster, problem took: all that was spent over all that was reached.

    Each figure is a ratio of sums over problems, with a bootstrap interval over problems. None: no
    problem was reached, or an amount is unknown.
    """

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    currency: Currency
    unit: Unit
    total: float | None
    """All that was spent, over problems and seeds."""
    per_correct: Interval | None
    """For each problem with a correct kernel."""
    per_faster: Interval | None
    """For each problem with a correct kernel that is faster than eager."""


class Group(BaseModel):
    """The problems of one level or category."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    name: str
    problems: int
    figures: tuple[FigureReport, ...]
    """fast_0, fast_1 and the geometric mean with failures counted."""


class Step(BaseModel):
    """How often a turn with one status was followed by one with another, in the same sample."""

    model_config = ConfigDict(frozen=True)

    status: str
    next_status: str
    count: int


class Trajectories(BaseModel):
    """How the turns of a condition went. Of `refine` only: samples have no next turn."""

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


class RuleAfterwards(BaseModel):
    """What came of following a rule of advice."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    rule: str
    given: int
    followed: int
    hit_rate: Interval | None
    """How often the figure moved as predicted. None: nothing is known."""
    time_change: float | None
    """Median: -0.2 is a fifth less. None: no time is known."""


class ConditionReport(BaseModel):
    """One model under one condition, all seeds together: a problem's value is their mean."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    model: str
    condition: str
    problems: int
    """Finished in all seeds; all figures are over these."""
    seeds: int
    figures: tuple[FigureReport, ...]
    """After the last call, by the second verdict where there is one."""
    costs: tuple[Costs, ...]
    levels: tuple[Group, ...]
    """Empty where all problems are of one level."""
    categories: tuple[Group, ...]
    """Empty where all problems are of one category."""
    at_k: tuple[AtK, ...]
    """Of `sample` only."""
    trajectories: Trajectories | None
    """Of `refine` only."""
    advice: tuple[RuleAfterwards, ...]
    """Empty where no prompt held advice."""

    def figure(self, key: str) -> FigureReport:
        """The figure of that key (see `experiments.analysis.measures`)."""
        return next(figure for figure in self.figures if figure.figure == key)


class CurvePoint(BaseModel):
    """A figure at a budget."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    spent: float
    """Budget of each problem, in the curve's currency."""
    value: float
    low: float | None
    high: float | None
    ended: float
    """Share of problems (and seeds) whose calls were all made by then: from there on the curve is
    flat for want of calls."""


class Curve(BaseModel):
    """Best so far against what a problem may spend. By the figures of the search, at every point:
    only the last best kernel was judged again."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    model: str
    condition: str
    figure: str
    label: str
    unit: Unit
    currency: Currency
    points: tuple[CurvePoint, ...]
    """The same budgets for all conditions of a model, so that they can be compared."""


class Term(BaseModel):
    """A fixed effect."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    name: str
    ratio: Interval
    """exp of the coefficient: a factor on the speedup."""
    chance: float
    """Of Wald's test."""


class MixedModel(BaseModel):
    """log speedup ~ condition * category, with the problem as a random effect."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    model: str
    """The language model (or writer) whose kernels these are."""
    formula: str
    observations: int
    problems: int
    terms: tuple[Term, ...]
    """Empty where the fit failed."""
    problem_sd: float | None
    """Standard deviation of log speedup between problems."""
    residual_sd: float | None
    note: str
    """What must be known to believe it; empty: it converged."""


class StudyReport(BaseModel):
    """One study."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True, populate_by_name=True)

    schema_: int = Field(default=1, alias="schema")
    study: str
    """Name of its folder."""
    question: str
    plan_hash: str
    circumstances: tuple[str, ...]
    """Device, precision, versions, models: what a reader must know, a line each."""
    notes: tuple[str, ...]
    """What limits the figures, a line each."""
    cells: tuple[CellProgress, ...]
    answers: tuple[Answer, ...]
    """The plan's contrasts. An answer that can't tell has power notes."""
    controls: tuple[Answer, ...]
    """Feedback against its placebo or shuffled control where the plan has both and does not ask
    for it; corrected for their own number."""
    conditions: tuple[ConditionReport, ...]
    """By model, then condition, in the order of the plan."""
    curves: tuple[Curve, ...]
    mixed: tuple[MixedModel, ...] = ()
    """Only where asked for; needs the extra `analysis`."""


def study_report(folder: Path, *, seed: int = 0, mixed: bool = False) -> StudyReport:
    """Report on the study in `folder`.

    `seed`: of the bootstrap. `mixed`: fit a mixed model for each model of the plan as well. Raises
    `UsageError` where `folder` is no study, or `mixed` is asked for without the extra `analysis`.
    """
    raise NotImplementedError
