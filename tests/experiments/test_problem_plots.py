from pathlib import Path

from experiments.problem_plots import best_by_problem
from experiments.runs import load_runs
from tests.experiments.made_runs import made_run


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
