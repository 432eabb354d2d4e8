"""A study's report: of made studies with known outcomes, and of a recorded one."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from experiments.study.plan import Condition, Contrast, ModelChoice, Plan
from experiments.study.study_folder import StudyFolder
from experiments.study.study_report import StudyReport, study_report
from problems.errors import UsageError
from tests.command import command, refused
from tests.experiments.made_runs import Outcome, made_run, names

RECORDED = Path("experiments/recordings/profile-worth-cpu.tar.xz")
MODULE = "experiments.report"
TOKENS_OF_A_CALL, COMPLETION_TOKENS = 1300, 400
SECONDS = {"model": 1.0, "build": 0.0, "judge": 1.0, "profile": 2.0, "device": 1.0}
CONTRAST = Contrast(a="sample", b="refine G+E", outcome="speedup_kept")


def made_study(
    folder: Path,
    conditions: dict[str, dict[str, Sequence[Outcome]]],
    contrasts: Sequence[Contrast] = (),
    *,
    seeds: int = 1,
    model: str = "offline/tuner",
    **of_plan: object,
) -> StudyReport:
    """A study whose cells went as told, with every seed alike, in compact form."""
    plan = Plan(
        question="Does it help?",
        conditions=tuple(Condition.parse(name) for name in conditions),
        seeds=tuple(range(seeds)),
        contrasts=tuple(contrasts),
        models=(ModelChoice(model=model, name="tuner"),),
        **of_plan,
    )
    folder.mkdir()
    StudyFolder(folder).remember(plan)
    for condition, results in conditions.items():
        parsed = Condition.parse(condition)
        for seed in range(seeds):
            cell = str(parsed).lower().replace(" ", "-").replace(":", "_")
            made_run(
                folder / f"{cell}-tuner-s{seed}",
                results,
                strategy=str(parsed.strategy),
                feedback=str(parsed.feedback),
                run_seed=seed,
                seconds=SECONDS,
                model=model,
                budget=plan.settings.get("budget"),
            )
    return study_report(folder)


def test_conditions_are_summed_up_side_by_side(tmp_path: Path):
    told = made_study(
        tmp_path / "study",
        {
            "sample": {name: [None, 2.0] for name in names(9)},
            "refine G+E": {name: ["wrong", 1.5] for name in names(9)},
        },
        [Contrast(a="sample", b="refine G+E", outcome="speedup_kept")],
        seeds=2,
    )
    sample, refine = told.conditions
    assert [(c.condition, c.problems, c.seeds) for c in told.conditions] == [
        ("sample", 9, 2),
        ("refine G+E", 9, 2),
    ]
    kept = sample.figure("speedup_kept").estimate
    assert kept is not None and kept.value == pytest.approx(2.0)
    assert [group.name for group in sample.levels] == ["1", "2", "3"]
    assert [each.k for each in sample.at_k] == [1, 2]
    assert (sample.trajectories.steps, refine.at_k) == ((), ())
    assert refine.trajectories.best_found_at == (0, 18)
    fast = next(each.estimate for each in refine.fast_p if each.figure == "fast_1.5")
    assert fast is not None and fast.value == 0
    tokens = next(each.estimate for each in refine.costs if each.figure == "tokens_per_faster")
    assert tokens is not None and tokens.value == pytest.approx(2 * TOKENS_OF_A_CALL)
    assert [each.finished for each in told.cells] == [9] * 4


def test_a_question_may_be_read_at_a_budget(tmp_path: Path):
    """Sampling is ahead after one call, refining after two."""
    told = made_study(
        tmp_path / "study",
        {
            "sample": {name: [1.5, None] for name in names(8)},
            "refine G+E": {name: [None, 2.0] for name in names(8)},
        },
        [
            Contrast(a="sample", b="refine G+E", outcome="speedup_kept"),
            Contrast(a="sample", b="refine G+E", outcome="speedup_kept", at={"tokens": 1500}),
            Contrast(a="sample", b="refine G+E", outcome="fast_1", at={"seconds_device": 3.0}),
            Contrast(a="sample", b="refine G+E", outcome="tokens"),
            Contrast(a="sample", b="refine G+E", outcome="fast_1", at={"cost_usd": 1.0}),
        ],
    )
    last, early, share, tokens, dollars = told.answers
    assert (dollars.difference, dollars.note) == (None, "no dollars were spent")
    assert (last.better, early.better, share.better) == ("refine G+E", "sample", "sample")
    assert last.note == "" and early.note == share.note == "by the figures of the search"
    assert early.sentence.startswith("refine G+E is worse than sample: x0.67 [0.67, 0.67]")
    assert share.test == "McNemar's exact test"
    assert tokens.difference is not None and tokens.difference.value == 0
    assert early.contrast.text == "speedup_kept at 1,500 tokens"
    curve = next(
        each
        for each in told.curves
        if (each.condition, each.over, each.figure, each.currency)
        == ("refine G+E", "sample", "speedup_kept", "calls")
    )
    assert [point.value for point in curve.points] == pytest.approx([1 / 1.5, 2 / 1.5])
    assert [point.ended for point in curve.points] == [0, 1]
    assert {each.currency for each in told.curves} == {
        "calls",
        "tokens",
        "seconds_wall",
        "seconds_device",
    }, "no dollars were spent"


def test_real_feedback_is_compared_with_its_controls(tmp_path: Path):
    told = made_study(
        tmp_path / "study",
        {
            name: {problem: [1.5 + gain] for problem in names(7)}
            for name, gain in (
                ("refine G+E", 0.0),
                ("refine G+E+P", 0.5),
                ("hybrid G+E+P", 0.2),
                ("refine G+E+placebo:P", 0.0),
                ("refine G+E+shuffled:P", 0.1),
            )
        },
    )
    [controls] = told.further.values()
    assert [(each.contrast.a, each.contrast.b, each.better) for each in controls] == [
        ("refine G+E+placebo:P", "refine G+E+P", "refine G+E+P"),
        ("refine G+E+shuffled:P", "refine G+E+P", "refine G+E+P"),
    ]
    assert not any(each.planned for each in controls)


def test_a_study_with_shared_drafts_says_what_became_of_them(tmp_path: Path):
    """Refining repairs two drafts of twelve, and makes four others 10 % faster in the last call."""
    drafts = {name: "wrong" if name in names(2) else 1.5 for name in names(12)}
    gain = dict.fromkeys(names(12), 1.0) | dict.fromkeys(names(12)[3:10:2], 1.1)
    told = made_study(
        tmp_path / "study",
        {
            "sample": {name: [drafts[name], None, 1.5, 9.0] for name in names(12)},
            "refine G+E": {name: [drafts[name], 1.5, 1.5 * gain[name]] for name in names(12)},
        },
        [CONTRAST.model_copy(update={"least": 1.2})],
        model="relay/somewhere",
        share="drafts",
        settings={"budget": 3},  # lowered: samples had come further
        groups={"new": tuple(names(12)[::2])},
    )
    [answer] = told.answers
    assert answer.sentence == (
        "can't tell whether refine G+E is better or worse than sample: x1.03 [1.01, 1.07]"
        " (95 % interval) in geometric mean speedup, at least 1 (eager kept), p = 0.12"
    )
    *_, could_tell, groups = answer.basis()
    assert could_tell.endswith("x1.04 by 12 problems, x1.20 by 6; x1.20 lies outside the interval")
    assert groups == "new (6): x1.00 [1.00, 1.00]; others (6): x1.07 [1.02, 1.10]"
    [early] = told.further["Secondary, not corrected: after one further call"]
    assert (early.note, early.b_higher, early.planned) == ("by the figures of the search", 2, None)
    sample, refine = told.conditions
    assert sample.trajectories.first == refine.trajectories.first == {"incorrect": 2, "correct": 10}
    assert refine.trajectories.best_found_at == (6, 2, 4)
    right, rescued = (each.estimate for each in refine.drafts)
    assert right is not None and rescued is not None
    assert [right.value, rescued.value] == pytest.approx([1.5 * 1.1**0.4, 1.5])
    assert [each.problems for each in refine.drafts] == [10, 2]
    spent = {each.figure: each.estimate for each in refine.costs}
    assert "tokens_per_correct" not in spent, "of relayed answers, tokens are estimates"
    characters = spent["answer_characters_per_correct"]
    assert characters is not None and characters.value == pytest.approx(3 * 4 * COMPLETION_TOKENS)
    assert told.notes[0].endswith("reasoning is not seen")


def test_a_condition_that_is_not_finished_is_named(tmp_path: Path):
    folder = tmp_path / "study"
    plan = Plan(
        question="?",
        conditions=(Condition.parse("sample"), Condition.parse("refine G+E")),
        contrasts=(Contrast(a="sample", b="refine G+E", outcome="fast_1"),),
    )
    folder.mkdir()
    StudyFolder(folder).remember(plan)
    with pytest.raises(UsageError, match="no problem is finished"):
        study_report(folder)
    made_run(folder / "sample-tuner-s0", {"a": [1.5, 2.0], "b": [1.5]}, strategy="sample")
    told = study_report(folder)
    assert [each.condition for each in told.conditions] == ["sample"]
    assert told.conditions[0].problems == 1, "one call of two was made on the other"
    assert any("refine G+E: no problem is finished" in note for note in told.notes)
    assert told.answers[0].note == "nothing is finished yet"


@pytest.mark.thorough
def test_the_recorded_study_is_reported_as_text_and_json():
    text = command(MODULE, RECORDED)
    assert (text.returncode, text.stderr) == (0, "")
    assert "can't tell whether refine G+E+P is better or worse than refine G+E+pl" in text.stdout
    assert "$" not in text.stdout, "no dollars were spent"
    assert "nan" not in text.stdout and "unknown" not in text.stdout
    told = StudyReport.model_validate(json.loads(command(MODULE, RECORDED, "--json").stdout))
    assert told.study == "profile-worth-cpu"
    assert all(answer.planned for answer in told.answers)
    assert told == study_report(RECORDED)
    assert "fast_1.25: correct and > 1.25x " in command(MODULE, RECORDED, "--p", "1.25").stdout


def test_options_of_a_study_are_refused_for_a_run(tmp_path: Path):
    run = made_run(tmp_path / "run", {"p": [2.0]})
    assert "--p is of studies" in refused(MODULE, run, "--p", 1.25)


def test_a_study_that_goes_on_is_reported_over_the_seeds_that_have_come_far(tmp_path: Path):
    """Seed 0 is finished, and so is sampling with seed 1; refining has some problems with it."""

    def told_with(second_seed: int) -> StudyReport:
        study = tmp_path / f"study-{second_seed}"
        results = {name: [1.5] for name in names(9)}
        made_study(study, {"sample": results, "refine G+E": results}, [CONTRAST], seeds=2)
        folder = study / "refine-g+e-tuner-s1"
        shutil.rmtree(folder)
        if second_seed:
            some = {name: [1.5] for name in names(9)[:second_seed]}
            made_run(folder, some, strategy="refine", feedback="G+E", run_seed=1, seconds=SECONDS)
        return study_report(study)

    none, few, many = told_with(0), told_with(4), told_with(5)
    for each in (none, few):
        assert [(one.problems, one.seeds) for one in each.conditions] == [(9, 1)] * 2
    assert [(each.problems, each.seeds) for each in few.answers] == [(9, 1)]
    assert [each.finished for each in few.cells] == [9, 9, 9, 4]
    assert "figures are over seed 0, and the plan has 2 seeds" in few.notes[0]
    assert [(each.problems, each.seeds) for each in many.conditions] == [(5, 2)] * 2
    assert not any("the plan has" in note for note in many.notes)
