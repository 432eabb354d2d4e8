"""The recorded turns of a study, by cell, and of a condition over its seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from agent.record.result import Stop
from agent.record.run_files import RunFiles
from experiments.analysis.arrays import FloatArray
from experiments.analysis.equal_budget import Currency, at_budgets, by_search
from experiments.analysis.measures import Measure
from experiments.analysis.outcomes import Outcomes, outcomes
from experiments.runs import FILE, load_runs, run_config
from experiments.study.cell import cell_name
from experiments.study.plan import Plan

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class CellResults:
    name: str
    seed: int
    of_problems: int
    finished: frozenset[str]
    turns: pd.DataFrame | None
    """As `load_runs` gives them; None: there is none yet."""

    @classmethod
    def read(cls, folder: Path, name: str, seed: int) -> CellResults:
        cell = folder / name
        config = run_config(cell)
        problems = len(config.get("problems") or ())
        # A cell that never got a turn holds an empty file.
        if not (cell / FILE).is_file() or not (cell / FILE).stat().st_size:
            return cls(name, seed, problems, frozenset(), None)
        # A budget may be lowered where a study ends early.
        turns = load_runs(cell).query("not call >= budget")
        # Of relayed answers, characters are counted; their tokens are estimates.
        turns = turns.assign(tokens=turns["tokens"].where(turns["answer_characters"] == 0, 0))
        return cls(name, seed, problems, _finished(cell, turns), turns)


def _finished(cell: Path, turns: pd.DataFrame) -> frozenset[str]:
    """By `result.json`, which does not name all problems while a study runs, and is missing in a
    compact run: of the others, those with as many calls as the budget has."""
    result = RunFiles(cell).result()
    stops = {p.problem: p.stop for p in result.problems} if result else {}
    ended = {name for name, stop in stops.items() if stop is not Stop.ERROR and not stop.is_passing}
    made = turns.groupby("problem")["call"].nunique()
    whole = set(made.index[made >= turns["budget"].iloc[0]])
    return frozenset(ended | (whole - stops.keys()))


@dataclass(frozen=True)
class ConditionResults:
    """A model under a condition: one cell a seed."""

    model: str
    condition: str
    cells: tuple[CellResults, ...]

    @property
    def finished(self) -> frozenset[str]:
        return frozenset.intersection(*(cell.finished for cell in self.cells))

    def of_seeds(self, seeds: Sequence[int]) -> ConditionResults:
        return replace(self, cells=tuple(cell for cell in self.cells if cell.seed in seeds))

    def turns(self, problems: Sequence[str]) -> list[pd.DataFrame]:
        """Those of `problems`, by seed; all seeds must have begun."""
        tables = [cell.turns for cell in self.cells if cell.turns is not None]
        return [table[table["problem"].isin(problems)] for table in tables]

    def outcomes(self, problems: Sequence[str], *, search: bool = False) -> list[Outcomes]:
        """By seed. `search`: by the figures of the search, without second verdicts."""
        turns = self.turns(problems)
        return [outcomes(by_search(table) if search else table, problems) for table in turns]


def finished_by_all(
    results: Mapping[tuple[str, str], ConditionResults],
) -> dict[str, frozenset[str]]:
    """By model: the problems that are finished in all cells of its conditions. Models and
    conditions of which nothing is finished are left out."""
    begun = [(model, each.finished) for (model, _), each in results.items() if each.finished]
    return {
        model: frozenset.intersection(*(finished for name, finished in begun if name == model))
        for model in dict.fromkeys(name for name, _ in begun)
    }


def balanced(
    results: Mapping[tuple[str, str], ConditionResults],
) -> dict[tuple[str, str], ConditionResults]:
    """With those seeds that make the most of what is finished, the same under all conditions.

    A study that is not finished has few problems with its later seeds, or none.
    """

    def over(seeds: Sequence[int]) -> dict[tuple[str, str], ConditionResults]:
        return {key: each.of_seeds(seeds) for key, each in results.items()}

    def reach(seeds: Sequence[int]) -> tuple[int, int]:
        """Conditions with something finished, and what is finished under all of them."""
        some = over(seeds)
        problems = sum(map(len, finished_by_all(some).values()))
        return sum(bool(each.finished) for each in some.values()), len(seeds) * problems

    seeds = [cell.seed for cell in next(iter(results.values())).cells]
    seeds.sort(key=lambda seed: reach([seed]), reverse=True)
    most = max(range(1, len(seeds) + 1), key=lambda count: (reach(seeds[:count]), count))
    return over(seeds[:most])


def values_at(
    measure: Measure, runs: Sequence[Outcomes], currency: Currency, budgets: FloatArray
) -> FloatArray:
    """Shape (problems, budgets, seeds), of outcomes by the search."""
    return np.stack([at_budgets(each, measure, currency, budgets) for each in runs], axis=2)


def read_conditions(plan: Plan, folder: Path) -> dict[tuple[str, str], ConditionResults]:
    """By model and condition, in the order of the plan. Raises `UsageError`."""
    return {
        (model.label, str(condition)): ConditionResults(
            model.label,
            str(condition),
            tuple(
                CellResults.read(folder, cell_name(model.label, condition, seed), seed)
                for seed in plan.seeds
            ),
        )
        for model in plan.models
        for condition in plan.conditions
    }
