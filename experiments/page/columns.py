"""The columns of a page: the conditions of a study, or runs; each with what it is measured over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.analysis.label import telling_labels
from experiments.analysis.outcomes import Outcomes
from experiments.analysis.run_facts import LoadedRun, facts_of, load_all
from experiments.page.sources import Sources
from experiments.study.cell_results import (
    CellResults,
    ConditionResults,
    balanced,
    finished_by_all,
    read_conditions,
)
from experiments.study.curves import Curve, curves_of
from experiments.study.study_folder import StudyRecord


@dataclass(frozen=True)
class Column:
    """One condition. A run without a study is a condition with one seed."""

    label: str
    results: ConditionResults
    runs: tuple[LoadedRun, ...]
    problems: tuple[str, ...]
    """What its figures are over; empty: there is nothing to measure yet."""

    @property
    def outcomes(self) -> list[Outcomes]:
        return self.results.outcomes(self.problems)


def columns_of(sources: Sources, record: StudyRecord | None) -> list[Column]:
    """Those that have a turn. Raises `UsageError` where a run can't be read."""
    if sources.study is not None and record is not None:
        return _of_study(record, sources.study)
    runs = load_all(folders) if (folders := sources.runs()) else []
    labels = telling_labels([run.turns for run in runs])
    return [_of_run(run, label) for run, label in zip(runs, labels, strict=True)]


def curves_of_runs(columns: Sequence[Column], seed: int = 0) -> list[Curve]:
    """Of each run by itself: none is compared with another."""
    return [
        curve
        for column in columns
        for curve in curves_of([column.results], column.problems, [], seed=seed)
    ]


def _of_study(record: StudyRecord, folder: Path) -> list[Column]:
    results = read_conditions(record.plan, folder)
    reported = balanced(results)
    finished = finished_by_all(reported)
    several = len(record.plan.models) > 1
    columns = []
    for (model, condition), each in results.items():
        # As `study_report` has it.
        over = reported[model, condition]
        problems = finished[model] if over.finished else frozenset()
        tables = [cell.turns for cell in each.cells if cell.turns is not None]
        if tables:
            label = f"{model}, {condition}" if several else condition
            runs = tuple(LoadedRun(turns, facts_of(turns)) for turns in tables)
            columns.append(Column(label, over, runs, tuple(sorted(problems))))
    return columns


def _of_run(run: LoadedRun, label: str) -> Column:
    facts = run.facts
    problems = tuple(facts.hashes)
    asked = len(problems) + len(facts.unbegun)
    cell = CellResults(facts.run, 0, asked, frozenset(problems), run.turns)
    return Column(label, ConditionResults("", label, (cell,)), (run,), problems)
