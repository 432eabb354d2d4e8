"""What a study answers: each of its contrasts, over the problems that are finished in its cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict

from agent.record.result import Stop
from agent.record.run_files import RunFiles
from experiments.analysis.interval import Interval, interval_of
from experiments.analysis.measures import MEASURES, Measure
from experiments.analysis.outcomes import outcomes
from experiments.analysis.statistics import LEVEL, Difference, Resamples, difference, holm
from experiments.runs import FILES, load_runs, read_records
from experiments.study.cell import cell_name
from experiments.study.plan import Condition, Contrast, Plan
from experiments.study.study_folder import StudyRecord


class PowerNote(BaseModel):
    """What would make a difference clear with a chance of 80 %, at 5 % over all contrasts."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    difference: float
    """In the unit of the outcome; a factor for a ratio."""
    observed: bool
    """It is the difference that was found; else one that the plan or a default states."""
    problems: int | None
    """With as many seeds as now. None: over 100,000, or it can't be known."""
    seeds: int | None
    """With as many problems as now. None: no number of seeds would do, or the variance over seeds
    is not known since there is one."""


class Answer(BaseModel):
    """One contrast of one model."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    contrast: Contrast
    model: str
    planned: bool
    """The question was written down before there was a turn."""
    problems: int
    """Finished in every cell that it needs."""
    of_problems: int
    seeds: int
    difference: Interval | None
    """B minus A, paired over problems, each the mean over seeds; B over A for a ratio. None: no
    problem is finished."""
    chance: float
    """Of a difference at least as large between equal conditions (`sign_flip_chance`)."""
    holm: float
    """The same, corrected for the number of contrasts."""
    better: str
    """The better condition; empty: can't tell."""
    test: str = ""
    """Name of the test that `chance` is of."""
    b_higher: int = 0
    """Problems on which B is higher."""
    a_higher: int = 0
    effect: float | None = None
    """Standardised: mean over standard deviation of the paired differences (Cohen's d_z). None: the
    differences are all the same."""
    power: tuple[PowerNote, ...] = ()
    """Where nothing can be told: of the observed difference and of a stated one."""


def answers(record: StudyRecord, folder: Path) -> tuple[Answer, ...]:
    """All contrasts of the latest plan. Chances are corrected over all of them together."""
    plan = record.plan
    asked = [
        (contrast, model.label)
        for contrast in plan.contrasts
        for model in plan.models
        if contrast.model in ("", model.label)
    ]
    pairs = [_Pair.of(plan, folder, contrast, model) for contrast, model in asked]
    known = [pair.difference.chance if pair.difference else 1.0 for pair in pairs]
    return tuple(
        pair.answer(record, chance) for pair, chance in zip(pairs, holm(known), strict=True)
    )


@dataclass(frozen=True)
class _Pair:
    contrast: Contrast
    model: str
    measure: Measure
    problems: tuple[str, ...]
    of_problems: int
    seeds: int
    difference: Difference | None

    @classmethod
    def of(cls, plan: Plan, folder: Path, contrast: Contrast, model: str) -> _Pair:
        measure = next(each for each in MEASURES if each.key == contrast.outcome)
        sides = [
            [folder / cell_name(model, Condition.parse(name), seed) for seed in plan.seeds]
            for name in (contrast.a, contrast.b)
        ]
        cells = [cell for side in sides for cell in side]
        problems = tuple(sorted(set.intersection(*map(_finished, cells))))
        found = None
        if problems:
            a, b = (
                np.mean([_values(c, measure, problems) for c in side], axis=0) for side in sides
            )
            shares = measure.unit == "share"
            found = difference(a, b, Resamples.of(len(problems)), shares=shares)
        return cls(
            contrast,
            model,
            measure,
            problems,
            max(len(RunFiles(cell).config().problems) for cell in cells),
            len(plan.seeds),
            found,
        )

    def answer(self, record: StudyRecord, chance: float) -> Answer:
        found, interval, sign = self.difference, None, 0
        if found is not None:
            ratio = self.measure.unit == "ratio"
            estimate = found.estimate.map(lambda v: float(np.exp(v))) if ratio else found.estimate
            interval = interval_of(estimate)
            sign = found.sign if chance <= 1 - LEVEL else 0
        return Answer(
            contrast=self.contrast,
            model=self.model,
            planned=record.is_planned(self.contrast),
            problems=len(self.problems),
            of_problems=self.of_problems,
            seeds=self.seeds,
            difference=interval,
            chance=found.chance if found else 1.0,
            holm=chance,
            better={1: self.contrast.b, -1: self.contrast.a, 0: ""}[sign],
        )


def _finished(cell: Path) -> set[str]:
    """Problems of a cell that got all of their turns.

    While a study runs, and in a compact run, `result.json` does not name them all: a problem with
    as many turns as the budget allows is finished, unless the result says otherwise.
    """
    files = RunFiles(cell)
    result = files.result()
    told = {p.problem: p.stop for p in result.problems} if result else {}
    finished = {name for name, stop in told.items() if stop not in (Stop.INTERRUPTED, Stop.ERROR)}
    begun = any((cell / name).is_file() for name in FILES)
    made = Counter(str(record["problem"]) for _, record in (read_records(cell) if begun else ()))
    budget = files.config().budget
    return finished | {name for name, turns in made.items() if turns >= budget} - told.keys()


def _values(cell: Path, measure: Measure, problems: Sequence[str]) -> np.ndarray:
    """Shape (problems,): the measure after the last call."""
    return np.asarray(measure.table(outcomes(load_runs(cell), problems))[:, -1], dtype=float)


def answer_lines(found: Sequence[Answer]) -> Iterator[str]:
    """The answers for a person, a line each."""
    for each in found:
        seeds = "1 seed" if each.seeds == 1 else f"{each.seeds} seeds"
        n = f"{each.problems} of {each.of_problems} problems, {seeds}"
        planned = "planned" if each.planned else "not planned before the results"
        if each.difference is None:
            yield f"{each.model}: {each.contrast.text}: nothing is finished yet ({n})"
            continue
        low, high = (_bound(b) for b in (each.difference.low, each.difference.high))
        verdict = f"{each.better} is better" if each.better else "can't tell"
        yield (
            f"{each.model}: {each.contrast.text}: {verdict}; {each.difference.value:.3g}"
            f" [{low}, {high}], p = {each.chance:.2g}, with Holm {each.holm:.2g}; {n}; {planned}"
        )


def _bound(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3g}"
