"""What the page is given, of studies that are finished, that go on, and of runs."""

from pathlib import Path

import pytest

from experiments.page.collection import collect
from experiments.page.page_data import Page
from experiments.page.sources import Sources
from experiments.study.plan import ModelChoice
from experiments.study.study_folder import StudyFolder
from problems.errors import UsageError
from tests.experiments.made_runs import made_run, names
from tests.experiments.study.test_answer import a_cell, a_plan, a_study


def page(*paths: Path) -> Page:
    return collect(Sources.at(paths)).page


def test_a_column_holds_all_seeds_of_a_condition(tmp_path: Path) -> None:
    a_study(tmp_path, a_plan(), gain=1.5)
    found = page(tmp_path)
    assert [condition.label for condition in found.conditions] == ["sample", "refine G+E"]
    assert [condition.runs for condition in found.conditions] == [(0, 1), (2, 3)]
    assert [best.run for best in found.problems[0].cells[1]] == [2, 3]
    assert [finding.settled for finding in found.findings] == [True, False]
    assert found.findings[0].verdict == "refine G+E is better"
    assert len(found.trajectories) == 4 * 12


def test_curves_have_a_line_a_condition_and_a_figure_is_compared(tmp_path: Path) -> None:
    a_study(tmp_path, a_plan(), gain=1.5)
    charts = {(chart.figure, chart.over, chart.axis): chart for chart in page(tmp_path).charts}
    assert len(charts["speedup_kept", "", "calls"].lines) == 2
    compared = charts["speedup_kept", "sample", "calls"]
    assert [line.condition for line in compared.lines] == [1]
    assert compared.lines[0].value[-1] == pytest.approx(1.5)
    assert ("speedup_kept", "", "cost_usd") not in charts, "nothing was spent"
    fast_p = charts["fast_p", "", "p"].lines[0]
    assert list(fast_p.value) == sorted(fast_p.value, reverse=True)


def test_runs_without_a_study_are_summed_up_one_by_one(tmp_path: Path) -> None:
    made_run(tmp_path / "a", {"p": [2.0, None], "q": [None, None]})
    made_run(tmp_path / "b", {"p": [1.5, 1.6]}, strategy="sample")
    first, second = page(tmp_path / "a", tmp_path / "b").findings
    assert first.verdict.startswith("1.41x [") and second.verdict.startswith("1.60x [")
    assert first.sentence.startswith("refine G+E+P: geometric mean")
    assert first.sentence.count("50 % [") == 2
    assert first.basis.startswith("2 problems, 4 calls; ")


def test_several_models_are_named(tmp_path: Path) -> None:
    models = (ModelChoice(model="offline/tuner"), ModelChoice(model="m/other"))
    plan = a_plan(models=models, seeds=(0,), contrasts=())
    StudyFolder(tmp_path).remember(plan)
    for model in ("tuner", "other"):
        a_cell(tmp_path / f"sample-{model}-s0", dict.fromkeys(names(6), (1.5,)))
    assert [condition.label for condition in page(tmp_path).conditions] == [
        "tuner, sample",
        "other, sample",
    ]


def test_a_study_that_goes_on_shows_what_there_is(tmp_path: Path) -> None:
    StudyFolder(tmp_path).remember(a_plan(seeds=(0,)))
    assert page(tmp_path).notes == ("No problem is finished yet.",)
    whole = dict.fromkeys(names(7), (None, 1.5))
    for cell in ("sample", "refine-g+e"):
        made_run(tmp_path / f"{cell}-tuner-s0", whole, budget=2)
    found = page(tmp_path)
    assert found.findings[0].basis.startswith("speedup_kept over 7 of 7"), "without any result.json"
    made_run(tmp_path / "sample-tuner-s1", dict.fromkeys(names(6), (None, 1.5)), budget=2)
    made_run(tmp_path / "refine-g+e-tuner-s1", dict.fromkeys(names(7), (None, 1.5)), budget=2)
    StudyFolder(tmp_path).remember(a_plan(seeds=(0, 1)))
    assert page(tmp_path).findings[0].basis.startswith("speedup_kept over 6 of 7")


def test_a_study_has_a_page_to_itself(tmp_path: Path) -> None:
    a_study(tmp_path / "study", a_plan(), gain=1.5)
    made_run(tmp_path / "run", {"level1_1_p": (1.0,)})
    with pytest.raises(UsageError, match="is a study, which has a page to itself"):
        page(tmp_path / "study", tmp_path / "run")
    assert len(page(tmp_path / "study" / "sample-tuner-s0", tmp_path / "run").conditions) == 2


def test_runs_of_one_kind_are_told_apart_by_their_names(tmp_path: Path) -> None:
    for name in ("one", "two"):
        made_run(tmp_path / name, {"level1_1_p": (1.0, 2.0), "level1_2_q": (None, None)})
    found = page(tmp_path / "one", tmp_path / "two", tmp_path / "one")
    assert [condition.label for condition in found.conditions] == ["one", "two"]
    solved, failed = found.problems
    assert (solved.cells[0][0].call, failed.cells[0][0].call) == (1, None)
    assert [turn.is_best for turn in found.trajectories[0].turns] == [False, True]
