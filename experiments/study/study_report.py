"""All that a study says, as one object: for `experiments.report`, the HTML page and notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import Field

from agent.config.feedback_spec import Control
from agent.record.archive import unpacked
from evaluator.record import Record
from experiments.analysis.common_ground import unconfirmed
from experiments.analysis.label import model_label
from experiments.analysis.measures import KEPT
from experiments.analysis.run_facts import RunFacts, facts_of
from experiments.analysis.statistics import FEWEST, LEVEL
from experiments.study.answer import Answer, answered, answers_of, ask_all
from experiments.study.cell_results import (
    ConditionResults,
    balanced,
    finished_by_all,
    read_conditions,
)
from experiments.study.condition_report import THRESHOLDS, ConditionReport, condition_report
from experiments.study.curves import Curve, curves_of
from experiments.study.plan import Contrast, Plan
from experiments.study.study_folder import FILE, StudyFolder, StudyRecord
from problems.errors import UsageError


class CellProgress(Record):
    cell: str
    """Its folder below the study's: a run directory."""
    model: str
    condition: str
    seed: int
    finished: int
    of_problems: int
    turns: int


class StudyReport(Record):
    schema_: int = Field(default=1, alias="schema")
    study: str
    question: str
    plan_hash: str
    circumstances: tuple[str, ...]
    """Models, device, precision, versions: a line each."""
    notes: tuple[str, ...]
    cells: tuple[CellProgress, ...]
    answers: tuple[Answer, ...]
    further: dict[str, tuple[Answer, ...]]
    """By title: what the plan does not ask for, or not first."""
    conditions: tuple[ConditionReport, ...]
    """By model, then condition, in the order of the plan; without those of which nothing is
    finished."""
    curves: tuple[Curve, ...]


def study_report(
    folder: Path,
    *,
    seed: int = 0,
    thresholds: Sequence[float] = THRESHOLDS,
) -> StudyReport:
    """Report on the study in `folder`, or in an archive of it.

    `seed`: of the bootstrap. `thresholds`: values of p for fast_p. Raises `UsageError` where
    `folder` is no study, or nothing is finished yet.
    """
    folder = unpacked(folder)
    record = StudyFolder(folder).record()
    if record is None:
        raise UsageError(
            f"{folder} is no study (no {FILE}); name a folder of kernel-refinery study"
        )
    plan = record.plan
    recorded = read_conditions(plan, folder)
    results = balanced(recorded)
    begun = {key: each for key, each in results.items() if each.finished}
    if not begun:
        raise UsageError(f"{folder}: no problem is finished yet; run the study first")
    common = {model: sorted(problems) for model, problems in finished_by_all(results).items()}
    usable = [each for (model, _), each in begun.items() if common[model]]
    facts = [
        facts_of(cell.turns)
        for each in recorded.values()
        for cell in each.cells
        if cell.turns is not None
    ]
    return StudyReport(
        study=folder.resolve().name,
        question=plan.question,
        plan_hash=record.versions[-1].hash,
        circumstances=tuple(_circumstances(plan, facts)),
        notes=tuple(_notes(plan, results, common)),
        cells=tuple(_cells(recorded)),
        answers=answers_of(record, results, seed=seed),
        further={title: found for title, found in _further(record, results, seed) if found},
        conditions=tuple(
            condition_report(each, common[each.model], folder, thresholds=thresholds, seed=seed)
            for each in usable
        ),
        curves=tuple(
            curve
            for model, problems in common.items()
            if problems
            for curve in curves_of(
                [each for each in usable if each.model == model],
                problems,
                [each for each in plan.contrasts if each.model in ("", model)],
                seed=seed,
            )
        ),
    )


def _further(
    record: StudyRecord, results: Mapping[tuple[str, str], ConditionResults], seed: int
) -> Iterator[tuple[str, tuple[Answer, ...]]]:
    plan = record.plan
    if plan.share is not None:
        last = [contrast for contrast in plan.contrasts if not contrast.at]
        early = [contrast.model_copy(update={"at": {"calls": 2}}) for contrast in last]
        title = "Secondary, not corrected: after one further call"
        yield title, tuple(ask_all(plan, early, results, seed=seed))
    controls = ask_all(plan, _controls(plan), results, seed=seed)
    title = "Feedback against its controls, where the plan does not ask for it"
    yield title, answered(controls, [False] * len(controls))


def _controls(plan: Plan) -> Iterator[Contrast]:
    """Each condition with real feedback against those that have a control in its place."""
    asked = {
        (each.a, each.b) for each in plan.contrasts if each.outcome == KEPT.key and not each.at
    }
    for real in plan.conditions:
        for control in plan.conditions:
            kinds = {item.control for item in control.feedback.items} - {Control.REAL}
            same = real.strategy == control.strategy and (
                [item.component for item in real.feedback.items]
                == [item.component for item in control.feedback.items]
            )
            all_real = real.feedback.only(Control.REAL) == real.feedback
            if kinds and same and all_real and (str(control), str(real)) not in asked:
                yield Contrast(a=str(control), b=str(real), outcome=KEPT.key)


def _cells(results: Mapping[tuple[str, str], ConditionResults]) -> Iterator[CellProgress]:
    for each in results.values():
        for cell in each.cells:
            yield CellProgress(
                cell=cell.name,
                model=each.model,
                condition=each.condition,
                seed=cell.seed,
                finished=len(cell.finished),
                of_problems=cell.of_problems,
                turns=0 if cell.turns is None else len(cell.turns),
            )


def _circumstances(plan: Plan, facts: Sequence[RunFacts]) -> Iterator[str]:
    def all_of(values: Iterator[str]) -> str:
        return ", ".join(dict.fromkeys(value for value in values if value))

    yield all_of(model_label(model.model) for model in plan.models)
    torch = all_of(each.versions.get("torch", "") for each in facts)
    flags = all_of(each.eager_flags for each in facts)
    commit = all_of(each.commit for each in facts)
    yield "; ".join(
        part
        for part in (
            f"{all_of(each.backend for each in facts)} on {all_of(each.device for each in facts)}",
            all_of(each.precision for each in facts),
            torch and f"torch {torch}",
            flags and f"eager with {flags}",
            commit and f"commit {commit}",
        )
        if part
    )


def _notes(
    plan: Plan,
    results: Mapping[tuple[str, str], ConditionResults],
    common: Mapping[str, Sequence[str]],
) -> Iterator[str]:
    if any(model.model.startswith("relay/") for model in plan.models):
        yield "answers came through files: their characters are counted, reasoning is not seen"
    seeds = [cell.seed for cell in next(iter(results.values())).cells]
    if len(seeds) < len(plan.seeds):
        yield (
            f"figures are over seed {', '.join(map(str, seeds))}, and the plan has"
            f" {len(plan.seeds)} seeds: with the others, too few problems are finished"
        )
    for (model, condition), each in results.items():
        if not each.finished:
            yield f"{model}, {condition}: no problem is finished with every seed; it is left out"
    for model, problems in common.items():
        group = [each for (name, _), each in results.items() if name == model]
        most = max(cell.of_problems for each in group for cell in each.cells)
        if len(problems) < most:
            yield (
                f"{model}: figures are over the {len(problems)} of {most} problems that are"
                " finished in all of its conditions"
            )
        if len(problems) < FEWEST:
            yield (
                f"{model}: with fewer than {FEWEST} problems no difference can be clear at"
                f" {LEVEL:.0%}"
            )
        lacking = [each.condition for each in group if any(map(unconfirmed, each.turns(problems)))]
        if lacking:
            yield (
                f"{model}: best kernels were not all judged again under {', '.join(lacking)};"
                " their speedups are those of the search, and a little too high"
            )
