from pathlib import Path

import pytest

from experiments.analysis.label import conditions
from experiments.problem_plots import best_by_condition, best_by_problem
from experiments.runs import load_runs
from tests.experiments.made_runs import made_run
from tests.experiments.test_plots import texts


def test_problems_are_ordered_and_failures_are_not_hidden(tmp_path: Path):
    made_run(tmp_path / "a", {"slow": [0.7], "fast": [3.0], "half": [None], "none": [None]})
    made_run(
        tmp_path / "b",
        {"slow": [0.9], "fast": [2.0], "half": [1.5], "none": ["wrong"]},
        strategy="sample",
    )
    figure = best_by_problem(load_runs(tmp_path))
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["fast", "half", "slow"]
    marks = {
        round(float(line.get_xdata()[0]), 2) for line in axes.lines if line.get_marker() in "oD"
    }
    assert marks == {0.7, 0.9, 3.0, 2.0, 1.5}
    crosses = [line for line in axes.lines if line.get_marker() == "x"]
    assert [round(float(cross.get_ydata()[0])) for cross in crosses] == [1]
    said = " ".join(figure.get_supxlabel().split())
    assert "n = 4 problems" in said
    assert "Crosses: no correct kernel. Not shown: 1 that no run solved." in said


def test_runs_without_a_kernel_can_be_drawn(tmp_path: Path):
    made_run(tmp_path / "a", {"p": [None]})
    best_by_problem(load_runs(tmp_path)).savefig(tmp_path / "p.png")


def test_under_a_condition_seeds_are_averaged_and_eager_is_kept(tmp_path: Path):
    made_run(tmp_path / "a", {"slow": [0.7], "fast": [4.0]}, run_seed=0)
    made_run(tmp_path / "b", {"slow": [0.9], "fast": [None]}, run_seed=1)
    made_run(tmp_path / "c", {"slow": [1.5], "fast": [3.0]}, strategy="sample")
    figure = best_by_condition(load_runs(tmp_path))
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["fast", "slow"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["refine G+E+P", "sample"]
    figures = {text.get_text(): text.get_weight() for text in axes.texts}
    assert figures == {"2.00": "normal", "3.00": "bold", "1.00": "normal", "1.50": "bold"}
    assert "2 seeds" in figure.get_supxlabel()


@pytest.mark.parametrize("seeds", [(0, 0), (0, 1)])
def test_runs_of_one_seed_are_no_seeds_of_one_condition(tmp_path: Path, seeds: tuple[int, int]):
    for name, seed in zip("ab", seeds, strict=True):
        made_run(tmp_path / name, {"p": [2.0]}, run_seed=seed)
    named = texts(best_by_condition(load_runs(tmp_path)))
    assert ({"a", "b"} <= named) == (seeds == (0, 0))


def test_a_problem_without_a_turn_under_a_condition_has_a_dash(tmp_path: Path):
    made_run(tmp_path / "a", {"p": [2.0], "q": [3.0]})
    made_run(tmp_path / "b", {"p": [1.5]}, strategy="sample")
    figure = best_by_condition(load_runs(tmp_path))
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["q", "p"]
    assert [text.get_text() for text in axes.texts] == ["3.00", "-", "2.00", "1.50"]
    assert "a dash: it has none" in figure.get_supxlabel()


def test_no_run_is_lost_where_two_have_the_same_name(tmp_path: Path):
    for parent in ("x/cpu", "y/cpu"):
        made_run(tmp_path / parent / "run", {"p": [2.0]})
    turns = load_runs([tmp_path / "x/cpu/run", tmp_path / "y/cpu/run"])
    assert sum(len(part) for _, part in conditions(turns)) == len(turns) == 2
