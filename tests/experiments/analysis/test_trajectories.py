from pathlib import Path

from experiments.analysis.trajectories import trajectories
from experiments.runs import load_runs
from tests.experiments.made_runs import made_run


def test_the_turns_are_summed_up_as_by_hand(tmp_path: Path):
    results = {
        "p": [2.0, None, 1.0, 3.0],
        "q": [1.0, "wrong", 1.5, 1.2],
        "r": [None, None, 4.0, 2.0],
        "s": [None, None, None, None],
    }
    turns = load_runs(made_run(tmp_path / "run", results))
    told = trajectories([turns], list(results))
    assert [(step.status, step.next_status, step.count) for step in told.steps] == [
        ("build_error", "build_error", 4),
        ("build_error", "correct", 2),
        ("incorrect", "correct", 1),
        ("correct", "build_error", 1),
        ("correct", "incorrect", 1),
        ("correct", "correct", 3),
    ]
    assert told.best_found_at == (0, 0, 2, 1)
    assert told.first == {"build_error": 2, "correct": 2}


def test_independent_samples_have_no_steps(tmp_path: Path):
    run = made_run(tmp_path / "run", {"p": [None, "wrong"]}, strategy="sample")
    told = trajectories([load_runs(run)], ["p"])
    assert (told.steps, told.best_found_at) == ((), (0, 0))
