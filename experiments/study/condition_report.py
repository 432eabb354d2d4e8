"""What one model reached and spent under one condition, over all seeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from agent.config.feedback_spec import Component, Control
from evaluator.record import Record
from experiments.analysis.advice_totals import RuleTotal, total_advice
from experiments.analysis.equal_budget import UNITS, Currency, spent_by_call
from experiments.analysis.measures import BUILT, MEASURES, SOL, Rival, Unit, share_above
from experiments.analysis.outcomes import Outcomes
from experiments.analysis.run_report import (
    AtK,
    FigureReport,
    Group,
    at_k_figures,
    figure_report,
    groups,
)
from experiments.analysis.statistics import Interval, Resamples, interval_of
from experiments.analysis.trajectories import Trajectories, trajectories
from experiments.study.cell_results import ConditionResults
from experiments.study.plan import Condition

THRESHOLDS = (0.0, 1.0, 1.1, 1.5, 2.0, 3.0)
OF_THE_BOUND = (0.25, 0.5, 0.75, 0.9)


class FastP(Record):
    """Share of problems whose best kernel is correct and more than `p` times as fast as a rival."""

    rival: Rival
    """`pytorch`: the faster of eager and torch.compile. `bound`: the speed of light, and `p` is a
    fraction of it."""
    p: float
    problems: int
    """Those whose best kernel was measured against this rival, and those without a kernel."""
    by_estimate: Interval | None
    by_interval: Interval | None
    """The whole interval of the kernel's speedup is above `p`. None: `p` is 0, or of the bound."""


class Costs(Record):
    """One currency. Each figure is all that was spent over all that was reached: a ratio of sums
    over problems and seeds, with a bootstrap interval over problems."""

    currency: Currency
    unit: Unit
    total: float | None
    """All that was spent, over problems and seeds. None: an amount is unknown."""
    per_correct: Interval | None
    """For each problem with a correct kernel. None: unknown, or there is none."""
    per_faster: Interval | None
    """For each problem with a correct kernel that is faster than eager."""


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
    fast_p: tuple[FastP, ...]
    """By rival, then p. Rivals that were not measured are left out."""
    costs: tuple[Costs, ...]
    """Currencies of which nothing was spent are left out."""
    levels: tuple[Group, ...]
    categories: tuple[Group, ...]
    at_k: tuple[AtK, ...]
    """Of `sample` only."""
    trajectories: Trajectories | None
    """Of `refine` only."""
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
        fast_p=tuple(_fast_p(reached, thresholds, seed)),
        costs=tuple(costs_of(reached, seed=seed)),
        levels=tuple(groups(turns, "level", seed)),
        categories=tuple(groups(turns, "category", seed)),
        at_k=tuple(at_k_figures(reached, seed)) if condition.is_sample else (),
        trajectories=None if condition.is_sample else trajectories(turns, problems),
        advice=rules,
    )


def costs_of(runs: Sequence[Outcomes], *, seed: int = 0) -> Iterator[Costs]:
    """Of `runs` of the same problems, one a seed; without currencies of which nothing was spent."""
    resamples = Resamples.of(len(runs[0].problems), seed=seed)
    for currency, unit in UNITS.items():
        spent = np.sum([spent_by_call(each, currency)[:, -1] for each in runs], axis=0)
        total = float(spent.sum())
        if total == 0:
            continue
        known = total == total
        correct, faster = (
            resamples.quotient(
                spent, np.sum([each.faster(p)[:, -1] for each in runs], axis=0, dtype=float)
            )
            for p in (0, 1)
        )
        yield Costs(
            currency=currency,
            unit=unit,
            total=total if known else None,
            per_correct=interval_of(correct) if known else None,
            per_faster=interval_of(faster) if known else None,
        )


def _known_figures(reached: Sequence[Outcomes], seed: int) -> Iterator[FigureReport]:
    for measure in (BUILT, *MEASURES, SOL):
        found = figure_report(reached, measure, seed)
        is_cost = measure.absent == "unknown"
        nothing_spent = is_cost and found.estimate and not found.estimate.value
        if found.estimate is not None and not nothing_spent:
            yield found


def _fast_p(reached: Sequence[Outcomes], thresholds: Sequence[float], seed: int) -> Iterator[FastP]:
    measured: list[Rival] = ["eager"]
    if any((each.rivals["compile_speedup"] > 0).any() for each in reached):
        measured += ["compile", "pytorch"]
    if any((each.rivals["sol_fraction"] > 0).any() for each in reached):
        measured.append("bound")
    for rival in measured:
        for p in OF_THE_BOUND if rival == "bound" else thresholds:
            if p == 0 and rival != "eager":
                continue
            found = figure_report(reached, share_above(p, rival), seed)
            clear = None
            if p > 0 and rival != "bound":
                clear = figure_report(reached, share_above(p, rival, clearly=True), seed)
            yield FastP(
                rival=rival,
                p=p,
                problems=found.problems,
                by_estimate=found.estimate,
                by_interval=clear.estimate if clear else None,
            )
