"""From a study or runs to what the page is given."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.analysis.interval import Interval, interval_of
from experiments.analysis.label import model_label, model_note, policy_label
from experiments.analysis.measures import FAST_0, FAST_1, KEPT, MEASURES, Measure
from experiments.analysis.outcomes import Outcomes, outcomes
from experiments.analysis.plot_style import line_styles
from experiments.analysis.run_facts import LoadedRun, load_all
from experiments.analysis.run_report import ProblemReport, problem_report
from experiments.analysis.statistics import Resamples
from experiments.analysis.table import gap, interval
from experiments.page.charts import charts
from experiments.page.page_data import (
    Best,
    ConditionColumn,
    FigureRow,
    Finding,
    Page,
    ProblemRow,
    RunEntry,
    Trajectory,
    TurnRow,
)
from experiments.page.sources import Sources
from experiments.study.answer import Answer, answers

if TYPE_CHECKING:
    import pandas as pd

PLAN_CHARACTERS = 200
"""Of a turn's plan, in lists."""


@dataclass(frozen=True)
class Collected:
    """A page, and where the details of its trajectories lie."""

    page: Page
    folders: tuple[Path, ...]
    """Of `page.runs`."""


@dataclass(frozen=True)
class _Column:
    label: str
    runs: tuple[LoadedRun, ...]
    places: tuple[int, ...]


def collect(sources: Sources) -> Collected:
    """Read what there is now. A page without a turn is a page. Raises `UsageError`."""
    groups = sources.groups()
    folders = [folder for group in groups for folder in group.folders]
    loaded = load_all(folders) if folders else []
    labels = [g.label for g in groups] if sources.study else _run_labels(loaded)
    columns: list[_Column] = []
    for group, label in zip(groups, labels, strict=True):
        begin = sum(len(column.runs) for column in columns)
        places = range(begin, begin + len(group.folders))
        columns.append(_Column(label, tuple(loaded[place] for place in places), tuple(places)))
    runs = [run for column in columns for run in column.runs]
    reports = [[problem_report(turns) for _, turns in _by_problem(run)] for run in runs]
    record = sources.record()
    shared = _shared_problems(runs) if record else None
    reached = [_reached(column, shared) for column in columns] if shared != () else []
    told = answers(record, sources.study) if record and sources.study and runs else ()
    page = Page(
        title=sources.title,
        question=record.plan.question if record else "",
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        notes=tuple(_notes(runs, shared)),
        findings=tuple(map(_answered, told)) or tuple(map(_levelled, columns, reached)),
        conditions=tuple(_conditions(columns)),
        figures=tuple(_figures(reached)),
        charts=tuple(charts(reached)),
        problems=tuple(_problems(columns, reports)),
        runs=tuple(map(_entry, runs)),
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


def _run_labels(runs: Sequence[LoadedRun]) -> list[str]:
    """Of each run the shortest label that tells it apart."""
    labels = [policy_label(run.facts.strategy, run.facts.feedback) for run in runs]
    return [
        label if labels.count(label) == 1 else run.facts.run
        for label, run in zip(labels, runs, strict=True)
    ]


def _shared_problems(runs: Sequence[LoadedRun]) -> tuple[str, ...]:
    """Problems with a turn in every run."""
    everywhere = set.intersection(*(set(run.facts.hashes) for run in runs)) if runs else set()
    return tuple(name for name in (runs[0].facts.hashes if runs else ()) if name in everywhere)


def _reached(column: _Column, problems: tuple[str, ...] | None) -> list[Outcomes]:
    return [outcomes(run.turns, problems) for run in column.runs]


def _notes(runs: Sequence[LoadedRun], shared: tuple[str, ...] | None) -> Iterator[str]:
    if not runs:
        yield "There is no turn yet."
    for model in dict.fromkeys(run.facts.model for run in runs):
        if model_note(model):
            yield f"{model_label(model)}."
    begun = {name for run in runs for name in run.facts.hashes}
    if shared is not None and len(shared) < len(begun):
        yield (
            f"Figures and curves are over the {len(shared)} of {len(begun)} problems that have a"
            " turn in every cell."
        )
    for flags in sorted({run.facts.eager_flags for run in runs} - {""}):
        yield f"Speedups are over eager ({flags})."
    short = [run.facts.run for run in runs if _is_short(run)]
    if short:
        yield f"Some problems have fewer calls than the budget: {', '.join(short)}."


def _is_short(run: LoadedRun) -> bool:
    facts = run.facts
    return bool(facts.unbegun) or facts.turns < facts.budget * len(facts.hashes)


def _answered(answer: Answer) -> Finding:
    contrast = answer.contrast
    measure = next(each for each in MEASURES if each.key == contrast.outcome)
    pairs = f"{contrast.b} against {contrast.a} ({answer.model})"
    if answer.difference is None:
        sentence = f"{pairs}: no problem is finished in all of its cells yet."
    else:
        sentence = f"{pairs}: {gap(answer.difference, measure.unit)} in {measure.label}."
    seeds = "1 seed" if answer.seeds == 1 else f"{answer.seeds} seeds"
    return Finding(
        verdict=f"{answer.better} is better" if answer.better else "Can't tell",
        settled=bool(answer.better),
        sentence=sentence,
        basis=(
            f"{answer.problems} of {answer.of_problems} problems, {seeds}; p = {answer.chance:.2g},"
            f" with Holm's correction {answer.holm:.2g}"
        ),
        planned=answer.planned,
    )


def _levelled(column: _Column, seeds: Sequence[Outcomes]) -> Finding:
    """Without a question, what a condition reached."""
    kept, solved, faster = (_figure(m, seeds)[0] for m in (KEPT, FAST_0, FAST_1))
    calls = sum(run.facts.turns for run in column.runs)
    return Finding(
        verdict=interval(kept, "ratio"),
        settled=False,
        sentence=(
            f"{column.label}: geometric mean speedup over eager, where a failure counts 1."
            f" {interval(solved, 'share')} of problems have a correct kernel,"
            f" {interval(faster, 'share')} one that is faster than eager."
        ),
        basis=f"{len(seeds[0].problems)} problems, {calls} calls; 95 % intervals over problems",
        planned=None,
    )


def _conditions(columns: Sequence[_Column]) -> Iterator[ConditionColumn]:
    for column, style in zip(columns, line_styles(len(columns)), strict=True):
        facts = column.runs[0].facts
        yield ConditionColumn(
            label=column.label,
            note=model_label(facts.model),
            colour=style.colour,
            dash=style.dash,
            runs=column.places,
            turns=sum(run.facts.turns for run in column.runs),
        )


def _figures(reached: Sequence[Sequence[Outcomes]]) -> Iterator[FigureRow]:
    for measure in MEASURES:
        found = [_figure(measure, seeds) for seeds in reached]
        if measure.key == "cost_usd" and all(each and each.value == 0 for each, _ in found):
            continue
        yield FigureRow(
            label=measure.label,
            values=tuple(
                interval(each, measure.unit)
                + (f" ({of} of {len(seeds[0].problems)})" if of < len(seeds[0].problems) else "")
                for (each, of), seeds in zip(found, reached, strict=True)
            ),
        )


def _figure(measure: Measure, seeds: Sequence[Outcomes]) -> tuple[Interval | None, int]:
    """A condition's figure, each problem the mean over seeds, and over how many problems."""
    tables = [measure.table(seed)[:, -1:] for seed in seeds]
    covered = measure.covered(*tables)
    if not covered.any():
        return None, 0
    table = np.mean(tables, axis=0)[covered]
    return interval_of(measure.estimates(table, Resamples.of(len(table)))[0]), len(table)


def _problems(
    columns: Sequence[_Column], reports: Sequence[Sequence[ProblemReport]]
) -> Iterator[ProblemRow]:
    levels = {report.problem: report.level for of_run in reports for report in of_run}
    by_run = [{report.problem: report for report in of_run} for of_run in reports]
    for problem, level in levels.items():
        cells = tuple(
            tuple(
                _best(place, by_run[place][problem])
                for place in column.places
                if problem in by_run[place]
            )
            for column in columns
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


def _entry(run: LoadedRun) -> RunEntry:
    facts = run.facts
    torch = f", torch {facts.versions['torch']}" if "torch" in facts.versions else ""
    commit = f", commit {facts.commit}" if facts.commit else ""
    return RunEntry(
        name=facts.run,
        title=facts.title,
        about=f"{facts.backend} on {facts.device}, {facts.precision}{torch}{commit}",
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
        speedup=_known(row["speedup"]),
        low=_known(row["speedup_low"]),
        high=_known(row["speedup_high"]),
        verdict=row["verdict"],
        latency_us=_known(row["latency_us"]),
        bottleneck=row["bottleneck"],
        tokens=int(row["tokens"]),
        cost_usd=_known(row["cost_usd"]),
        seconds=float(row["seconds_wall"]),
        plan=str(row["plan"])[:PLAN_CHARACTERS],
        is_best=is_best,
    )


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
