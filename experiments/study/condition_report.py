"""What one model reached and spent under one condition, over all seeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from agent.config.feedback_spec import Component, Control
from evaluator.record import Record
from experiments.analysis.advice_totals import RuleTotal, total_advice
from experiments.analysis.equal_budget import NOUNS, UNITS, spent_by_call
from experiments.analysis.measures import OF_STUDIES, RESCUED, RIGHT_FIRST, Rival, share_above
from experiments.analysis.outcomes import Outcomes
from experiments.analysis.run_report import (
    AtK,
    FigureReport,
    Group,
    at_k_figures,
    figure_report,
    groups,
)
from experiments.analysis.statistics import Resamples, interval_of
from experiments.analysis.trajectories import Trajectories, trajectories
from experiments.study.cell_results import ConditionResults
from experiments.study.plan import Condition

THRESHOLDS = (0.0, 1.0, 1.1, 1.5, 2.0, 3.0)
OF_THE_BOUND = (0.25, 0.5, 0.75, 0.9)


class ConditionReport(Record):
    """One model under one condition, all seeds together: a problem's value is their mean."""

    model: str
    condition: str
    problems: int
    """Finished with these seeds under all conditions of the model; all figures are over these."""
    seeds: int
    """While a study goes on, those that make the most of what is finished."""
    figures: tuple[FigureReport, ...]
    """After the last call, by the second verdict where there is one. Without those that nothing is
    known of, and costs of which nothing was spent."""
    drafts: tuple[FigureReport, ...]
    """The best kernels of problems whose first call was correct, and where it failed."""
    fast_p: tuple[FigureReport, ...]
    """By rival, then p, `fast_P` and `clear_P`. Rivals that were not measured are left out."""
    costs: tuple[FigureReport, ...]
    """In each currency, all that was spent over the problems with a correct kernel, and with one
    faster than eager: ratios of sums over problems and seeds. None: unknown, or there is none."""
    levels: tuple[Group, ...]
    categories: tuple[Group, ...]
    at_k: tuple[AtK, ...]
    """Of `sample` only."""
    trajectories: Trajectories
    advice: tuple[RuleTotal, ...]
    """What came of following each rule. Empty where no prompt held real advice."""

    def figure(self, key: str) -> FigureReport:
        return next(figure for figure in self.figures if figure.figure == key)


def condition_report(
    results: ConditionResults,
    problems: Sequence[str],
    folder: Path,
    *,
    thresholds: Sequence[float] = THRESHOLDS,
    seed: int = 0,
) -> ConditionReport:
    """Report on `problems`, which are finished in all cells of `results`."""
    turns, reached = results.turns(problems), results.outcomes(problems)
    condition = Condition.parse(results.condition)
    advised = condition.feedback.control_of(Component.ADVICE) is Control.REAL
    rules = total_advice(folder / cell.name for cell in results.cells) if advised else ()
    return ConditionReport(
        model=results.model,
        condition=results.condition,
        problems=len(problems),
        seeds=len(results.cells),
        figures=tuple(_known_figures(reached, seed)),
        drafts=tuple(figure_report(reached, each, seed) for each in (RIGHT_FIRST, RESCUED)),
        fast_p=tuple(_fast_p(reached, thresholds, seed)),
        costs=tuple(costs_of(reached, seed=seed)),
        levels=tuple(groups(turns, "level", seed)),
        categories=tuple(groups(turns, "category", seed)),
        at_k=tuple(at_k_figures(reached, seed)) if condition.is_sample else (),
        trajectories=trajectories(turns, problems),
        advice=rules,
    )


def costs_of(runs: Sequence[Outcomes], *, seed: int = 0) -> Iterator[FigureReport]:
    """Of `runs` of the same problems, one a seed; without currencies of which nothing was spent."""
    resamples = Resamples.of(len(runs[0].problems), seed=seed)
    for currency, unit in UNITS.items():
        spent = np.sum([spent_by_call(each, currency)[:, -1] for each in runs], axis=0)
        for p, kind in enumerate(("correct", "faster") if spent.sum() != 0 else ()):
            hits = np.sum([each.faster(p)[:, -1] for each in runs], axis=0, dtype=float)
            yield FigureReport(
                figure=f"{currency}_per_{kind}",
                label=f"{NOUNS[currency]} for each {kind} problem",
                unit=unit,
                problems=len(spent),
                estimate=interval_of(resamples.quotient(spent, hits)),
            )


def _known_figures(reached: Sequence[Outcomes], seed: int) -> Iterator[FigureReport]:
    for measure in OF_STUDIES:
        found = figure_report(reached, measure, seed)
        is_cost = measure.absent == "unknown"
        nothing_spent = is_cost and found.estimate and not found.estimate.value
        if found.estimate is not None and not nothing_spent:
            yield found


def _fast_p(
    reached: Sequence[Outcomes], thresholds: Sequence[float], seed: int
) -> Iterator[FigureReport]:
    measured: list[Rival] = ["eager"]
    if any((each.rivals["compile_speedup"] > 0).any() for each in reached):
        measured += ["compile", "pytorch"]
    for rival in measured:
        for p in thresholds:
            if p > 0 or rival == "eager":
                yield figure_report(reached, share_above(p, rival), seed)
            if p > 0:
                yield figure_report(reached, share_above(p, rival, clearly=True), seed)
    if any((each.rivals["sol_fraction"] > 0).any() for each in reached):
        for p in OF_THE_BOUND:
            yield figure_report(reached, share_above(p, "bound"), seed)
