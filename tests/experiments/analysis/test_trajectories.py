from pathlib import Path

import numpy as np
import pytest

from experiments.analysis.trajectories import trajectories, transitions
from experiments.runs import load_runs
from tests.experiments.made_runs import made_run


def test_the_turns_are_summed_up_as_by_hand(tmp_path: Path):
    results = {
        "p": [2.0, None, 1.0, 3.0],  # broken, repaired at half the speed, improved
        "q": [1.0, "wrong", 1.5, 1.2],  # repaired 1.5 times as fast
        "r": [None, None, 4.0, 2.0],  # repaired; no kernel before a failure
        "s": [None, None, None, None],
    }
    turns = load_runs(made_run(tmp_path / "run", results))
    told = trajectories([turns], list(results))
    steps = {(step.status, step.next_status): step.count for step in told.steps}
    assert steps == {
        ("correct", "build_error"): 1,
        ("correct", "incorrect"): 1,
        ("correct", "correct"): 3,
        ("build_error", "correct"): 2,
        ("build_error", "build_error"): 4,
        ("incorrect", "correct"): 1,
    }
    assert told.repaired_problems == 2
    assert told.repaired_over_unbroken is not None
    assert told.repaired_over_unbroken.value == pytest.approx(np.sqrt(0.5 * 1.5))
    assert told.best_found_at == (0, 0, 2, 1)
    assert told.idle_calls == pytest.approx(2 / 3)
    assert told.plateau_share is not None and told.plateau_share.value == 0


def test_a_study_without_a_kernel_has_nothing_to_say(tmp_path: Path):
    turns = load_runs(made_run(tmp_path / "run", {"p": [None, None]}))
    told = trajectories([turns], ["p"])
    assert told.repaired_over_unbroken is told.plateau_share is told.idle_calls is None
    assert told.best_found_at == (0, 0)


def test_steps_are_counted_within_a_problem(tmp_path: Path):
    run = made_run(tmp_path / "run", {"p": [None, "wrong", 1.5, 1.6], "q": [2.0, None]})
    table = transitions(load_runs(run))
    assert list(table.index) == list(table.columns) == ["build_error", "incorrect", "correct"]
    assert table.to_numpy().tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 1]]


def test_independent_samples_have_no_steps(tmp_path: Path):
    run = made_run(tmp_path / "run", {"p": [None, "wrong", 1.5]}, strategy="sample")
    assert transitions(load_runs(run)).empty
