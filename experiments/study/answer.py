"""What a study answers: each of its contrasts, over the problems that are finished in its cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from evaluator.record import Record
from experiments.analysis.arrays import FloatArray
from experiments.analysis.equal_budget import NOUNS, spent_by_call
from experiments.analysis.measures import Measure, Unit, last_values, measure_of
from experiments.analysis.statistics import (
    LEVEL,
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
from tools.profiling.profile_facts import count_words


class Answer(Record):
    contrast: Contrast
    model: str
    planned: bool = False
    """The question was written down before there was a turn."""
    problems: int
    """Finished in every cell that it needs."""
    of_problems: int
    seeds: int
    unit: Unit = "share"
    difference: Interval | None = None
    """B minus A, paired over problems, each the mean over seeds; B over A for a ratio. None: it is
    not known; `note` says why."""
    chance: float = 1.0
    """Of a difference at least as large between equal conditions (`sign_flip_chance`)."""
    holm: float = 1.0
    better: str = ""
    """The better condition; empty: can't tell."""
    test: str = ""
    b_higher: int = 0
    a_higher: int = 0
    note: str = ""
    """What must be known of it; where there is no difference, why."""
    effect: float | None = None
    """Standardised: mean over standard deviation of the paired differences (Cohen's d_z). None: the
    differences are all the same."""

    @property
    def size(self) -> str:
        """`23 of 23 problems, 2 seeds`."""
        return f"{self.problems} of {self.of_problems} problems, {count_words(self.seeds, 'seed')}"


def ask(
    results: Mapping[tuple[str, str], ConditionResults],
    contrast: Contrast,
    model: str,
    *,
    seed: int = 0,
) -> Answer:
    """Compare over the problems that are finished in every cell of both conditions.

    The chance is not yet corrected for the number of questions: see `answered`.
    """
    a, b = (results[model, str(Condition.parse(name))] for name in (contrast.a, contrast.b))
    measure = measure_of(contrast.outcome)
    problems = tuple(sorted(a.finished & b.finished))
    asked = Answer(
        contrast=contrast,
        model=model,
        problems=len(problems),
        of_problems=max(cell.of_problems for side in (a, b) for cell in side.cells),
        seeds=len(a.cells),
        unit=measure.unit,
    )
    if not problems:
        return asked.model_copy(update={"note": "nothing is finished yet"})
    first, second, note = _values((a, b), contrast, measure, problems)
    if first is None or second is None:
        return asked.model_copy(update={"note": note})
    paired = second - first
    known = ~np.isnan(paired).any(axis=1)
    if measure.absent == "left out":
        paired = paired[known]
        if not known.any():
            return asked.model_copy(update={"note": f"{measure.key} was not measured"})
    elif not known.all():
        return asked.model_copy(update={"note": "some calls have no known cost"})
    found = difference(
        np.zeros(len(paired)),
        paired.mean(axis=1),
        Resamples.of(len(paired), seed=seed),
        shares=measure.unit == "share",
    )
    better = found.sign if measure.better == "higher" else -found.sign
    return asked.model_copy(
        update={
            "problems": len(paired),
            "difference": interval_of(measure.in_unit(found.estimate)),
            "chance": found.chance,
            "better": {1: contrast.b, -1: contrast.a, 0: ""}[better],
            "test": found.test,
            "b_higher": found.higher,
            "a_higher": found.differing - found.higher,
            "note": note,
            "effect": found.effect,
        }
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


def answered(asked: Sequence[Answer], planned: Sequence[bool]) -> tuple[Answer, ...]:
    """The answers, with chances corrected over all of them together."""
    corrected = holm([each.chance for each in asked])
    return tuple(
        each.model_copy(
            update={
                "planned": is_planned,
                "holm": chance,
                "better": each.better if chance <= 1 - LEVEL else "",
            }
        )
        for each, chance, is_planned in zip(asked, corrected, planned, strict=True)
    )


def answer_lines(found: Sequence[Answer]) -> Iterator[str]:
    """The answers for a person: a line with each verdict, and its figures in the lines below."""
    for each in found:
        text = f"{each.model}: {each.contrast.text}"
        if each.difference is None:
            yield f"{text}: {each.note} ({each.size})"
            continue
        verdict = f"{each.better} is better" if each.better else "can't tell"
        yield f"{text}: {verdict}"
        equal = each.problems - each.b_higher - each.a_higher
        yield (
            f"  {gap(each.difference, each.unit)} over {each.size}; higher on {each.b_higher},"
            f" lower on {each.a_higher}, equal on {equal}{each.note and f'; {each.note}'}"
        )
        effect = "" if each.effect is None else f"; standardised effect {each.effect:.2f}"
        planned = "planned" if each.planned else "not planned before the results"
        yield (
            f"  {each.test}: p = {each.chance:.2g}, corrected for"
            f" {count_words(len(found), 'question')} (Holm) p = {each.holm:.2g}{effect}; {planned}"
        )
