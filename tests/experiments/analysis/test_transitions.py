from pathlib import Path

from experiments.analysis.transitions import transitions
from experiments.runs import load_runs
from tests.experiments.made_runs import made_run


def test_steps_are_counted_within_a_problem(tmp_path: Path):
    run = made_run(tmp_path / "run", {"p": [None, "wrong", 1.5, 1.6], "q": [2.0, None]})
    table = transitions(load_runs(run))
    assert list(table.index) == list(table.columns) == ["build_error", "incorrect", "correct"]
    assert table.to_numpy().tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 1]]


def test_independent_samples_have_no_steps(tmp_path: Path):
    run = made_run(tmp_path / "run", {"p": [None, "wrong", 1.5]}, strategy="sample")
    assert transitions(load_runs(run)).empty
