"""What a study answers: each of its contrasts, over the problems that are finished in its cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pydantic import BaseModel, ConfigDict

from experiments.analysis.equal_budget import NOUNS, spent_by_call
from experiments.analysis.measures import Measure, Unit, last_values, measure_of
from experiments.analysis.statistics import (
    LEVEL,
    Difference,
    Interval,
    Resamples,
    difference,
    holm,
    interval_of,
)
from experiments.analysis.table import gap
from experiments.study.cell_results import (
    ConditionResults,
    balanced,
    read_conditions,
    values_at,
)
from experiments.study.plan import Condition, Contrast
from experiments.study.study_folder import StudyRecord

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]


class Answer(BaseModel):
    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    contrast: Contrast
    model: str
    planned: bool
    """The question was written down before there was a turn."""
    problems: int
    """Finished in every cell that it needs."""
    of_problems: int
    seeds: int
    unit: Unit = "share"
    difference: Interval | None
    """B minus A, paired over problems, each the mean over seeds; B over A for a ratio. None: it is
    not known; `note` says why."""
    chance: float
    """Of a difference at least as large between equal conditions (`sign_flip_chance`)."""
    holm: float
    better: str
    """The better condition; empty: can't tell."""
    test: str = ""
    b_higher: int = 0
    a_higher: int = 0
    note: str = ""
    """What must be known of it; where there is no difference, why."""
    effect: float | None = None
    """Standardised: mean over standard deviation of the paired differences (Cohen's d_z). None: the
    differences are all the same."""


@dataclass(frozen=True)
class Asked:
    """What answers a question, before chances are corrected for the number of questions."""

    contrast: Contrast
    model: str
    measure: Measure
    problems: int
    of_problems: int
    seeds: int
    note: str = ""
    difference: Difference | None = None

    def answer(self, *, holm: float, planned: bool) -> Answer:
        found, sign = self.difference, 0
        if found is not None:
            sign = found.sign if holm <= 1 - LEVEL else 0
        better = sign if self.measure.better == "higher" else -sign
        return Answer(
            contrast=self.contrast,
            model=self.model,
            planned=planned,
            problems=self.problems,
            of_problems=self.of_problems,
            seeds=self.seeds,
            unit=self.measure.unit,
            difference=interval_of(self.measure.in_unit(found.estimate)) if found else None,
            chance=found.chance if found else 1.0,
            holm=holm,
            better={1: self.contrast.b, -1: self.contrast.a, 0: ""}[better],
            test=found.test if found else "",
            b_higher=found.higher if found else 0,
            a_higher=found.differing - found.higher if found else 0,
            effect=found.effect if found else None,
            note=self.note,
        )


def ask(
    results: Mapping[tuple[str, str], ConditionResults],
    contrast: Contrast,
    model: str,
    *,
    seed: int = 0,
) -> Asked:
    """Compare over the problems that are finished in every cell of both conditions."""
    a, b = (results[model, str(Condition.parse(name))] for name in (contrast.a, contrast.b))
    measure = measure_of(contrast.outcome)
    problems = tuple(sorted(a.finished & b.finished))
    of = max(cell.of_problems for side in (a, b) for cell in side.cells)
    asked = Asked(contrast, model, measure, len(problems), of, len(a.cells))
    if not problems:
        return replace(asked, note="nothing is finished yet")
    first, second, note = _values((a, b), contrast, measure, problems)
    if first is None or second is None:
        return replace(asked, note=note)
    paired = second - first
    known = ~np.isnan(paired).any(axis=1)
    if measure.absent == "left out":
        paired = paired[known]
        if not known.any():
            return replace(asked, note=f"{measure.key} was not measured")
    elif not known.all():
        return replace(asked, note="some calls have no known cost")
    return replace(
        asked,
        problems=len(paired),
        note=note,
        difference=difference(
            np.zeros(len(paired)),
            paired.mean(axis=1),
            Resamples.of(len(paired), seed=seed),
            shares=measure.unit == "share",
        ),
    )


def _values(
    sides: tuple[ConditionResults, ConditionResults],
    contrast: Contrast,
    measure: Measure,
    problems: Sequence[str],
) -> tuple[FloatArray | None, FloatArray | None, str]:
    """Of both sides, shape (problems, seeds), and what must be known of them; None: see there."""
    confirmed = [side.outcomes(problems) for side in sides]
    for currency, amount in contrast.at.items():
        spent = [spent_by_call(reached, currency)[:, -1] for runs in confirmed for reached in runs]
        most = float(np.max(spent))
        if not most:
            return None, None, f"no {NOUNS[currency]} were spent"
        # NaN where some are not known: then the values are NaN, too.
        if not most <= amount:
            budget = np.array([amount])
            searched = [side.outcomes(problems, search=True) for side in sides]
            a, b = (values_at(measure, runs, currency, budget)[:, 0] for runs in searched)
            return a, b, "by the figures of the search"
    a, b = (last_values(measure, runs) for runs in confirmed)
    return a, b, ""


def answers(record: StudyRecord, folder: Path) -> tuple[Answer, ...]:
    """All contrasts of the latest plan. Chances are corrected over all of them together."""
    return answers_of(record, balanced(read_conditions(record.plan, folder)))


def answers_of(
    record: StudyRecord,
    results: Mapping[tuple[str, str], ConditionResults],
    *,
    seed: int = 0,
) -> tuple[Answer, ...]:
    """The same, of results that were read before. `seed`: of the bootstrap."""
    plan = record.plan
    asked = [
        ask(results, contrast, model.label, seed=seed)
        for contrast in plan.contrasts
        for model in plan.models
        if contrast.model in ("", model.label)
    ]
    return answered(asked, [record.is_planned(each.contrast) for each in asked])


def answered(asked: Sequence[Asked], planned: Sequence[bool]) -> tuple[Answer, ...]:
    """The answers, with chances corrected over all of them together."""
    chances = [each.difference.chance if each.difference else 1.0 for each in asked]
    return tuple(
        each.answer(holm=corrected, planned=is_planned)
        for each, corrected, is_planned in zip(asked, holm(chances), planned, strict=True)
    )


def answer_lines(found: Sequence[Answer]) -> Iterator[str]:
    """The answers for a person: a line with each verdict, and its figures in the lines below."""
    for each in found:
        text = f"{each.model}: {each.contrast.text}"
        if each.difference is None:
            yield f"{text}: {each.note} ({_size(each)})"
            continue
        verdict = f"{each.better} is better" if each.better else "can't tell"
        yield f"{text}: {verdict}"
        equal = each.problems - each.b_higher - each.a_higher
        yield (
            f"  {gap(each.difference, each.unit)} over {_size(each)}; higher on {each.b_higher},"
            f" lower on {each.a_higher}, equal on {equal}{each.note and f'; {each.note}'}"
        )
        effect = "" if each.effect is None else f"; standardised effect {each.effect:.2f}"
        planned = "planned" if each.planned else "not planned before the results"
        yield (
            f"  {each.test}: p = {each.chance:.2g}, corrected for {_count(len(found), 'question')}"
            f" (Holm) p = {each.holm:.2g}{effect}; {planned}"
        )


def _size(each: Answer) -> str:
    return f"{each.problems} of {each.of_problems} problems, {_count(each.seeds, 'seed')}"


def _count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"
