"""What a study answers: each of its contrasts, over the problems that are finished in its cells."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from pydantic import Field

from evaluator.record import Record
from experiments.analysis.arrays import FloatArray
from experiments.analysis.equal_budget import NOUNS, spent_by_call
from experiments.analysis.measures import Measure, Unit, last_values, measure_of
from experiments.analysis.statistics import (
    FEWEST,
    LEVEL,
    POWER,
    Interval,
    Resamples,
    difference,
    holm,
    interval_of,
    problems_to_tell,
    tellable,
)
from experiments.analysis.table import gap, gap_size
from experiments.study.cell_results import (
    ConditionResults,
    balanced,
    read_conditions,
    values_at,
)
from experiments.study.plan import Condition, Contrast, Plan
from experiments.study.study_folder import StudyRecord
from tools.profiling.profile_facts import count_words


class Answer(Record):
    contrast: Contrast
    model: str
    planned: bool | None = None
    """The question was written down before there was a turn. None: it is no question of a plan."""
    problems: int
    """Finished in every cell that it needs."""
    of_problems: int
    seeds: int
    unit: Unit = "share"
    difference: Interval | None = None
    """B minus A, paired over problems, each the mean over seeds; B over A for a ratio. None: it is
    not known; `note` says why."""
    groups: dict[str, Answer] = Field(default_factory=dict)
    """The same over each group of the plan's, and over all other problems; not corrected."""
    chance: float = 1.0
    """Of a difference at least as large between equal conditions (`sign_flip_chance`)."""
    holm: float = 1.0
    """The chance, corrected for the number of `questions`."""
    questions: int = 1
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
    deviation: float = 0.0
    """That standard deviation; of logarithms for a ratio."""

    @property
    def size(self) -> str:
        """`23 of 23 problems, 2 seeds`."""
        return f"{self.problems} of {self.of_problems} problems, {count_words(self.seeds, 'seed')}"

    @property
    def sentence(self) -> str:
        """The answer in plain words, with its figures."""
        a, b = self.contrast.a, self.contrast.b
        verdict = f"{b} is {'better' if self.better == b else 'worse'} than {a}"
        if not self.better:
            verdict = f"can't tell whether {b} is better or worse than {a}"
        if self.difference is None:
            return f"{verdict}: {self.note}"
        corrected = "corrected " * (self.questions > 1)
        return (
            f"{verdict}: {gap(self.difference, self.unit)} (95 % interval) in"
            f" {measure_of(self.contrast.outcome).label}, {corrected}p = {self.holm:.2g}"
        )

    def basis(self) -> Iterator[str]:
        """What the sentence rests on, a line each."""
        if self.difference is None:
            yield f"{self.contrast.text}; {self.size}"
            return
        equal = self.problems - self.b_higher - self.a_higher
        yield (
            f"{self.contrast.text} over {self.size}; higher on {self.b_higher}, lower on"
            f" {self.a_higher}, equal on {equal}{self.note and f'; {self.note}'}"
        )
        before = f" before the correction for {self.questions} questions (Holm)"
        effect = "" if self.effect is None else f"; standardised effect {self.effect:.2f}"
        yield f"{self.test}: p = {self.chance:.2g}{before * (self.questions > 1)}{effect}"
        asks = not self.better or self.contrast.least is not None
        if asks and self.problems >= FEWEST and self.deviation > 0:
            yield f"could be told, in {100 * POWER:.0f} % of such studies: {self._told_by()}"
        if self.groups:
            yield "; ".join(
                f"{name} ({each.problems}): {gap(each.difference, self.unit) or each.note}"
                for name, each in self.groups.items()
            )

    def _told_by(self) -> str:
        """What this many problems tell, and how many tell the least that would matter."""
        size = tellable(self.deviation, self.problems, self.questions)
        size = math.exp(size) if self.unit == "ratio" else size
        told = f"{gap_size(size, self.unit)} by {self.problems} problems"
        least, found = self.contrast.least, self.difference
        if least is None or found is None:
            return told
        needed = problems_to_tell(math.log(least), self.deviation, self.questions)
        place = "in" if found.high is None or found.high >= least else "out"
        name = gap_size(least, self.unit)
        return f"{told}, {name} by {needed}; {name} lies {place}side the interval"


def ask(
    results: Mapping[tuple[str, str], ConditionResults],
    contrast: Contrast,
    model: str,
    *,
    seed: int = 0,
    among: Collection[str] | None = None,
) -> Answer:
    """Compare over the problems that are finished in every cell of both conditions.

    The chance is not yet corrected for the number of questions: see `answered`.
    """
    a, b = (results[model, str(Condition.parse(name))] for name in (contrast.a, contrast.b))
    measure = measure_of(contrast.outcome)
    finished = a.finished & b.finished
    problems = tuple(sorted(finished if among is None else finished.intersection(among)))
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
            "holm": found.chance,
            "better": {1: contrast.b, -1: contrast.a, 0: ""}[better],
            "test": found.test,
            "b_higher": found.higher,
            "a_higher": found.differing - found.higher,
            "note": note,
            "effect": found.effect,
            "deviation": found.deviation,
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
    asked = ask_all(plan, plan.contrasts, results, seed=seed)
    return answered(asked, [record.is_planned(each.contrast) for each in asked])


def ask_all(
    plan: Plan,
    contrasts: Iterable[Contrast],
    results: Mapping[tuple[str, str], ConditionResults],
    *,
    seed: int = 0,
) -> list[Answer]:
    """Ask each of `contrasts` of each model that it is about; not yet corrected."""
    rest = frozenset().union(*(each.finished for each in results.values()))
    groups = {**plan.groups, "others": rest.difference(*plan.groups.values())}
    return [
        ask(results, contrast, model.label, seed=seed).model_copy(
            update={
                "groups": {
                    name: ask(results, contrast, model.label, seed=seed, among=among)
                    for name, among in groups.items()
                    if plan.groups and among
                }
            }
        )
        for contrast in contrasts
        for model in plan.models
        if contrast.model in ("", model.label)
    ]


def answered(asked: Sequence[Answer], planned: Sequence[bool]) -> tuple[Answer, ...]:
    """The answers, with chances corrected over all of them together."""
    corrected = holm([each.chance for each in asked])
    return tuple(
        each.model_copy(
            update={
                "planned": is_planned,
                "questions": len(asked),
                "holm": chance,
                "better": each.better if chance <= 1 - LEVEL else "",
            }
        )
        for each, chance, is_planned in zip(asked, corrected, planned, strict=True)
    )


def answer_lines(found: Sequence[Answer]) -> Iterator[str]:
    """The answers for a person: a sentence each, and what it rests on in the lines below."""
    for each in found:
        tags = {True: " (planned)", False: " (not planned before the results)", None: ""}
        yield f"{each.model}{tags[each.planned]}: {each.sentence}"
        yield from (f"  {line}" for line in each.basis())
