"""What the page is given: all that its views show at once. Details of turns come in blocks."""

from __future__ import annotations

from typing import Literal

from evaluator.record import Record
from experiments.analysis.equal_budget import Currency
from experiments.analysis.measures import Unit
from experiments.analysis.statistics import Interval
from experiments.study.report_text import Section


class Finding(Record):
    """One answer, ready to be read: of a contrast, or of a run where there is no study."""

    verdict: str
    """`refine G+E+P is better`, `Can't tell` or, of a run, `1.97x [1.90, 2.04]`."""
    settled: bool
    sentence: str
    basis: str
    planned: bool | None
    """The question was asked before there was a turn. None: it is no contrast."""


class ConditionColumn(Record):
    """A model under a condition, over its seeds; of runs without a study, one run."""

    label: str
    note: str
    """What must be said of the model; empty for a language model."""
    colour: str
    dash: str
    runs: tuple[int, ...]
    """Places in `Page.runs`."""


class CurveLine(Record):
    condition: int
    x: tuple[float, ...]
    value: tuple[float, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]


class Chart(Record):
    """The lines of all conditions for one figure on one axis."""

    figure: str
    """Key of a measure, or `fast_p`."""
    over: str
    """The condition that the lines are compared with, paired over problems: differences of shares,
    quotients of ratios. Empty: they are the figure itself."""
    label: str
    unit: Unit
    axis: Currency | Literal["p"]
    axis_label: str
    lines: tuple[CurveLine, ...]


class Best(Record):
    run: int
    correct: int
    calls: int
    speedup: Interval | None
    """Of the best kernel over eager, by its second verdict where there is one."""
    verdict: str
    call: int | None
    """The call that found it, as the record counts, from 0."""


class ProblemRow(Record):
    problem: str
    level: int
    cells: tuple[tuple[Best, ...], ...]
    """By condition, those of its runs that have a turn of it."""


class RunEntry(Record):
    name: str
    """As links name it: unique on the page."""
    title: str
    about: str


class TurnRow(Record):
    call: int
    """As the record counts, from 0; with the run and the problem it names the turn."""
    place: str
    """`turn 3` or `sample 3`, as the record counts."""
    status: str
    speedup: float | None
    low: float | None
    high: float | None
    verdict: str
    latency_us: float | None
    bottleneck: str
    tokens: int | None
    cost_usd: float | None
    seconds: float
    plan: str
    is_best: bool


class Trajectory(Record):
    run: int
    problem: str
    turns: tuple[TurnRow, ...]


class Page(Record):
    """Everything but the details."""

    title: str
    question: str
    """Of the study; empty: there is none."""
    circumstances: tuple[str, ...]
    made: str
    notes: tuple[str, ...]
    findings: tuple[Finding, ...]
    further: dict[str, tuple[Finding, ...]]
    """By title: what the plan does not ask for, or not first."""
    conditions: tuple[ConditionColumn, ...]
    tables: tuple[Section, ...]
    charts: tuple[Chart, ...]
    problems: tuple[ProblemRow, ...]
    runs: tuple[RunEntry, ...]
    trajectories: tuple[Trajectory, ...]
