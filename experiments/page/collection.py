"""From a study or runs to what the page is given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.analysis.label import model_label, model_note
from experiments.analysis.run_facts import LoadedRun
from experiments.analysis.run_report import ProblemReport, RunReport, problem_report, report_on
from experiments.analysis.statistics import finite, whole
from experiments.analysis.table import interval
from experiments.page.charts import curve_charts, fast_p_chart
from experiments.page.columns import Column, columns_of, curves_of_runs
from experiments.page.page_data import (
    Best,
    Chart,
    ConditionColumn,
    Finding,
    Page,
    ProblemRow,
    RunEntry,
    Trajectory,
    TurnRow,
)
from experiments.page.sources import Sources
from experiments.plot_style import line_styles
from experiments.study.answer import Answer
from experiments.study.condition_report import THRESHOLDS
from experiments.study.curves import Curve
from experiments.study.report_text import Section, figure_table, run_text, study_text
from experiments.study.study_folder import StudyFolder
from experiments.study.study_report import study_report
from tools.profiling.profile_facts import count_words

if TYPE_CHECKING:
    import pandas as pd

UNFINISHED = (
    "The study is not finished. Verdicts may change, and looking often finds differences by chance."
)
PLAN_CHARACTERS = 200
"""Of a turn's plan, in lists."""


@dataclass(frozen=True)
class Collected:
    page: Page
    folders: tuple[Path, ...]
    """Of `page.runs`."""


@dataclass(frozen=True)
class _Body:
    """What a study, or its runs by themselves, have to say."""

    notes: tuple[str, ...] = ()
    circumstances: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    further: dict[str, tuple[Finding, ...]] = field(default_factory=dict)
    tables: tuple[Section, ...] = ()
    curves: tuple[Curve, ...] = ()


def collect(sources: Sources) -> Collected:
    """Read what there is now. A page without a turn is a page. Raises `UsageError`."""
    record = StudyFolder(sources.study).record() if sources.study else None
    columns = columns_of(sources, record)
    runs = [run for column in columns for run in column.runs]
    reports = [[problem_report(turns) for _, turns in _by_problem(run)] for run in runs]
    body = _Body(notes=("No problem is finished yet.",))
    if any(column.problems for column in columns):
        body = _of_study(sources, sources.study) if sources.study else _of_runs(sources, columns)
    page = Page(
        title=sources.title,
        question=record.plan.question if record else "",
        circumstances=body.circumstances,
        made=datetime.now(UTC).isoformat(sep=" ", timespec="seconds"),
        notes=body.notes,
        findings=body.findings,
        further=body.further,
        conditions=tuple(_conditions(columns)),
        tables=body.tables,
        charts=tuple(_charts(columns, body.curves)),
        problems=tuple(_problems(columns, reports)),
        runs=tuple(
            RunEntry(name=run.facts.run, title=run.facts.title, about=run.facts.setting)
            for run in runs
        ),
        trajectories=tuple(
            _trajectory(place, turns, report)
            for place, run in enumerate(runs)
            for (_, turns), report in zip(_by_problem(run), reports[place], strict=True)
        ),
    )
    return Collected(page, tuple(Path(run.facts.path) for run in runs))


def _by_problem(run: LoadedRun) -> Iterator[tuple[str, pd.DataFrame]]:
    for name, turns in run.turns.groupby("problem", sort=False):
        yield str(name), turns


def _of_study(sources: Sources, folder: Path) -> _Body:
    thresholds = sorted({*THRESHOLDS, *sources.more_thresholds})
    report = study_report(folder, seed=sources.seed, thresholds=thresholds)
    tables = tuple(section for section in study_text(report).sections if section.table)
    goes_on = any(cell.finished < cell.of_problems for cell in report.cells)
    return _Body(
        notes=(*([UNFINISHED] if goes_on else ()), *report.notes),
        circumstances=report.circumstances,
        findings=tuple(map(_of_contrast, report.answers)),
        further={title: tuple(map(_of_contrast, found)) for title, found in report.further.items()},
        tables=tables,
        curves=report.curves,
    )


def _of_runs(sources: Sources, columns: Sequence[Column]) -> _Body:
    runs = [run for column in columns for run in column.runs]
    reports = [report_on(run, seed=sources.seed) for run in runs]
    figures = figure_table(
        [column.label for column in columns],
        [each.figures for each in reports],
        [len(each.problems) for each in reports],
    )
    models = dict.fromkeys(run.facts.model for run in runs)
    flags = dict.fromkeys(run.facts.eager_flags for run in runs if run.facts.eager_flags)
    return _Body(
        notes=tuple(
            f"{each.facts.run}: {note}." for each in reports for note in run_text(each).notes
        ),
        circumstances=(
            *(model_label(model) for model in models if model_note(model)),
            *(f"Speedups are over eager ({flag})." for flag in flags),
        ),
        findings=tuple(_of_run(each, c.label) for each, c in zip(reports, columns, strict=True)),
        tables=(Section("Figures after the last call", (), figures),),
        curves=tuple(curves_of_runs(columns, sources.seed)),
    )


def _of_contrast(answer: Answer) -> Finding:
    return Finding(
        verdict=f"{answer.better} is better" if answer.better else "Can't tell",
        settled=bool(answer.better),
        sentence=f"{answer.model}: {answer.sentence}.",
        basis="; ".join(answer.basis()),
        planned=answer.planned,
    )


def _of_run(report: RunReport, label: str) -> Finding:
    kept, solved, faster = (
        report.figure(key).estimate for key in ("speedup_kept", "fast_0", "fast_1")
    )
    return Finding(
        verdict=interval(kept, "ratio"),
        settled=False,
        sentence=(
            f"{label}: geometric mean speedup over eager, where a failure counts 1."
            f" {interval(solved, 'share')} of problems have a correct kernel,"
            f" {interval(faster, 'share')} one that is faster than eager."
        ),
        basis=(
            f"{count_words(len(report.problems), 'problem')},"
            f" {count_words(report.facts.turns, 'call')}; 95 % intervals over problems"
        ),
        planned=None,
    )


def _conditions(columns: Sequence[Column]) -> Iterator[ConditionColumn]:
    begin = 0
    for column, style in zip(columns, line_styles(len(columns)), strict=True):
        places = range(begin, begin + len(column.runs))
        begin = places.stop
        yield ConditionColumn(
            label=column.label,
            note=model_label(column.runs[0].facts.model),
            colour=style.colour,
            dash=style.dash,
            runs=tuple(places),
        )


def _charts(columns: Sequence[Column], curves: Sequence[Curve]) -> Iterator[Chart]:
    names = [(column.results.model, column.results.condition) for column in columns]
    yield from curve_charts(curves, {name: place for place, name in enumerate(names)})
    measured = {place: column.outcomes for place, column in enumerate(columns) if column.problems}
    if measured:
        yield fast_p_chart(measured)


def _problems(
    columns: Sequence[Column], reports: Sequence[Sequence[ProblemReport]]
) -> Iterator[ProblemRow]:
    levels = {report.problem: report.level for of_run in reports for report in of_run}
    by_run = [{report.problem: report for report in of_run} for of_run in reports]
    conditions = list(_conditions(columns))
    for problem, level in levels.items():
        cells = tuple(
            tuple(_best(p, by_run[p][problem]) for p in condition.runs if problem in by_run[p])
            for condition in conditions
        )
        yield ProblemRow(problem=problem, level=level, cells=cells)


def _best(place: int, report: ProblemReport) -> Best:
    return Best(
        run=place,
        correct=report.correct,
        calls=report.calls,
        speedup=report.speedup,
        verdict=report.verdict,
        call=None if report.best_call is None else report.best_call - 1,
    )


def _trajectory(place: int, turns: pd.DataFrame, report: ProblemReport) -> Trajectory:
    rows = (
        _turn(row, is_best=row["call"] + 1 == report.best_call) for row in turns.to_dict("records")
    )
    return Trajectory(run=place, problem=report.problem, turns=tuple(rows))


def _turn(row: dict[Any, Any], *, is_best: bool) -> TurnRow:
    is_sample = row["strategy"] == "sample"
    return TurnRow(
        call=int(row["call"]),
        place=f"sample {row['sample']}" if is_sample else f"turn {row['turn']}",
        status=row["status"],
        speedup=finite(row["speedup"]),
        low=finite(row["speedup_low"]),
        high=finite(row["speedup_high"]),
        verdict=row["verdict"],
        latency_us=finite(row["latency_us"]),
        bottleneck=row["bottleneck"],
        tokens=whole(row["tokens"]),
        cost_usd=finite(row["cost_usd"]),
        seconds=float(row["seconds_wall"]),
        plan=str(row["plan"])[:PLAN_CHARACTERS],
        is_best=is_best,
    )
