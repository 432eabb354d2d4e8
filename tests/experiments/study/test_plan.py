"""What a plan may say, and which mistakes are told in one line."""

from pathlib import Path

import pytest
import yaml

from experiments.study.cell import cells_of
from experiments.study.plan import Condition, Plan, load_plan
from experiments.study.study_run import check_plan
from problems.errors import UsageError

GOOD = {
    "question": "Does refinement help?",
    "settings": {"problem": ["level1_1_swish"], "device": "cpu", "timing-seconds": 0.5},
    "models": ["offline/tuner", {"model": "replay/none", "name": "other", "args": {"top_p": 0.5}}],
    "conditions": ["sample", "refine G+E+placebo:P"],
    "seeds": [0, 1],
    "contrasts": [{"a": "sample", "b": "refine G+E+placebo:P", "outcome": "fast_1"}],
}


def loaded(tmp_path: Path, **changes: object) -> Plan:
    file = tmp_path / "plan.yaml"
    file.write_text(yaml.safe_dump({**GOOD, **changes}))
    return load_plan(file)


def test_cells_are_models_times_conditions_times_seeds(tmp_path: Path) -> None:
    cells = cells_of(loaded(tmp_path), tmp_path / "study")
    assert [cell.name for cell in cells] == [
        "sample-tuner-s0",
        "refine-g+e+placebo_p-tuner-s0",
        "sample-other-s0",
        "refine-g+e+placebo_p-other-s0",
        "sample-tuner-s1",
        "refine-g+e+placebo_p-tuner-s1",
        "sample-other-s1",
        "refine-g+e+placebo_p-other-s1",
    ]
    config = cells[3].resolution.config
    assert (config.model, config.model_args) == ("replay/none", {"top_p": 0.5})
    assert (str(config.feedback), config.seed, config.timing_seconds) == ("G+E+placebo:P", 0, 0.5)
    assert config.output == tmp_path / "study" / cells[3].name


def test_a_hybrid_shares_its_settings_with_the_other_cells(tmp_path: Path) -> None:
    settings = {**GOOD["settings"], "budget": 6, "drafts": 4}  # type: ignore[dict-item]
    conditions = ["sample", "refine G+E", "hybrid G+E"]
    plan = loaded(tmp_path, settings=settings, conditions=conditions, seeds=[0], contrasts=[])
    cells = {cell.name: cell.resolution.config for cell in cells_of(plan, tmp_path / "study")}
    assert {config.budget for config in cells.values()} == {6}
    found = cells["hybrid-g+e-tuner-s0"]
    assert (str(found.feedback), found.drafts, found.refine_best) == ("G+E", 4, 2)
    assert cells["sample-tuner-s0"].drafts is cells["refine-g+e-tuner-s0"].drafts is None


def test_the_hash_changes_with_all_that_a_plan_says(tmp_path: Path) -> None:
    plans = [
        loaded(tmp_path),
        loaded(tmp_path, question="Another?"),
        loaded(tmp_path, seeds=[0, 2]),
        loaded(tmp_path, contrasts=[]),
    ]
    assert len({plan.hash for plan in plans}) == len(plans)
    assert loaded(tmp_path).hash == plans[0].hash


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"conditions": ["refine"]}, "say which feedback"),
        ({"conditions": ["sample G"]}, "sample has no feedback"),
        ({"conditions": ["hybrid"]}, "such as 'hybrid G\\+E\\+P'"),
        ({"conditions": ["anneal"]}, "'anneal' is not 'sample', or 'refine', 'hybrid' or 'agent'"),
        ({"conditions": ["sample", "sample"]}, "there twice"),
        ({"conditions": []}, "conditions"),
        ({"seeds": [1, 1]}, "there twice"),
        ({"models": ["offline/tuner", "other/tuner"]}, "there twice"),
        ({"budget": 3}, "budget"),
        ({"contrasts": [{"a": "sample", "b": "refine G", "outcome": "fast_1"}]}, "is none of"),
        ({"contrasts": [{"a": "sample", "b": "sample", "outcome": "best"}]}, "outcome"),
    ],
)
def test_a_mistake_is_told_in_one_line(tmp_path: Path, changes: dict, reason: str) -> None:
    with pytest.raises(UsageError, match=reason) as told:
        loaded(tmp_path, **changes)
    assert "\n" not in str(told.value)
    assert str(tmp_path) in str(told.value)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"strategy": "refine"}, "belongs to models, conditions and seeds"),
        ({"bugdet": 3}, "did you mean 'budget'"),
        ({"budget": 0}, "budget"),
    ],
)
def test_a_wrong_setting_is_told_before_anything_runs(
    tmp_path: Path, settings: dict, reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        cells_of(loaded(tmp_path, settings=settings), tmp_path)


def test_no_file_and_no_plan(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no plan"):
        load_plan(tmp_path / "none.yaml")
    (tmp_path / "list.yaml").write_text("- a\n")
    with pytest.raises(UsageError, match="holds no plan"):
        load_plan(tmp_path / "list.yaml")


def test_a_condition_reads_as_it_is_written() -> None:
    for text in ("sample", "refine none", "refine G+E+placebo:P", "hybrid G+E"):
        assert str(Condition.parse(text)) == text


def test_a_contrast_may_name_any_p_a_rival_and_a_budget(tmp_path: Path) -> None:
    contrast = {**GOOD["contrasts"][0], "outcome": "clear_1.25_compile", "at": {"tokens": 5e4}}
    plan = loaded(tmp_path, contrasts=[contrast])
    assert plan.contrasts[0].text == "clear_1.25_compile at 50,000 tokens"
    for changes in ({"outcome": "fast"}, {"at": {"euros": 1}}, {"at": {"calls": 1, "tokens": 2}}):
        with pytest.raises(UsageError, match=r"contrasts\.0") as raised:
            loaded(tmp_path, contrasts=[{**contrast, **changes}])
        assert "\n" not in str(raised.value)


def test_a_group_of_problems_that_are_not_there_is_refused(tmp_path: Path) -> None:
    plan = loaded(tmp_path, groups={"new": ["level1_1_swish", "level9_1_none"]})
    with pytest.raises(UsageError, match="groups: new: the study has no problem level9_1_none"):
        check_plan(plan, cells_of(plan, tmp_path))


def test_what_a_plan_does_not_say_leaves_its_hash_alone() -> None:
    """Of the recorded study, as it was before a contrast could say at which budget."""
    assert load_plan(Path("experiments/plans/profile-worth-cpu.yaml")).hash == "a9e32747fbafa418"
