from pathlib import Path

import numpy as np
import pytest

from agent.record.confirmation import confirmation_of
from agent.record.run_files import RunFiles
from evaluator.evaluation import Verdict
from experiments.analysis.outcomes import Outcomes, outcomes
from experiments.analysis.run_facts import load_run
from experiments.analysis.run_report import report_on
from experiments.runs import load_runs
from tests.agent.made_records import turn
from tests.evaluator.made_evaluations import correct
from tests.experiments.made_runs import (
    evaluation_of,
    made_run,
    made_turn,
    write_run,
)


def reached(tmp_path: Path, results: dict) -> Outcomes:
    return outcomes(load_runs(made_run(tmp_path / "run", results)))


def test_the_best_so_far_goes_with_its_own_interval(tmp_path: Path):
    found = reached(tmp_path, {"a": [None, 1.2, "wrong", 2.0, 1.5]})
    assert found.best.tolist() == [[0, 1.2, 1.2, 2.0, 2.0]]
    assert found.best_low == pytest.approx(np.array([[0, 1.188, 1.188, 1.98, 1.98]]))
    assert found.solved.tolist() == [[False, True, True, True, True]]
    assert found.kept.tolist() == [[1, 1.2, 1.2, 2.0, 2.0]]


def test_calls_that_were_not_made_give_nothing_and_cost_nothing(tmp_path: Path):
    found = reached(tmp_path, {"short": [1.5], "long": [1.5, None, 2.0]})
    assert found.made.tolist() == [[True, False, False], [True, True, True]]
    assert found.best[0].tolist() == [1.5, 1.5, 1.5]
    assert found.spent["tokens"].sum(axis=1).tolist() == [1300, 3900]


def test_a_correct_kernel_that_was_not_timed_is_correct_and_no_more(tmp_path: Path):
    untimed = turn(0).evaluation.model_copy(update={"timing": None})
    found = outcomes(load_runs(write_run(tmp_path / "run", [turn(0, untimed)])))
    assert found.faster(0).all()
    assert not found.faster(0.5).any()


def test_what_its_verdict_leaves_open_is_not_clearly_faster(tmp_path: Path):
    unclear = correct(3.17, low=3.075, high=4.786, verdict=Verdict.UNCLEAR)
    run = write_run(tmp_path / "run", [turn(0, unclear)])
    for confirmed in (False, True):
        if confirmed:
            path = RunFiles(run).confirmations_path(turn(0).problem)
            path.parent.mkdir()
            path.write_text(confirmation_of(turn(0, unclear), unclear).model_dump_json() + "\n")
        found = outcomes(load_runs(run))
        assert found.faster(1.0).all()
        assert not found.clearly_faster(1.0).any()
        assert found.clearly_faster(0.9).all()


def test_problems_are_put_in_the_order_asked_for(tmp_path: Path):
    table = load_runs(made_run(tmp_path / "run", {"a": [1.5], "b": [2.0], "c": [3.0]}))
    chosen = outcomes(table, ["c", "a"])
    assert chosen.best[:, -1].tolist() == [3.0, 1.5]
    assert outcomes(table, ["a", "never_tried"]).best[:, -1].tolist() == [1.5, 0.0]


def judged_again(run: Path, problem: str, turns: dict[int, float | None]) -> None:
    """Second verdicts for these turns: a speedup, or None for one that failed."""
    for number, speedup in turns.items():
        told = confirmation_of(made_turn(problem, number, 1.0), evaluation_of(speedup))
        path = RunFiles(run).confirmations_path(problem)
        path.parent.mkdir(exist_ok=True)
        with path.open("a") as file:
            file.write(told.model_dump_json() + "\n")


def test_the_second_verdict_ends_the_best_so_far(tmp_path: Path):
    results = {"a": [1.2, 2.0, 1.5], "b": [3.0, 2.0], "c": [1.5], "d": [4.0]}
    run = made_run(tmp_path / "run", results)
    judged_again(run, "a", {1: 1.8})
    judged_again(run, "b", {0: None, 1: 1.9})
    judged_again(run, "c", {0: None})
    found = outcomes(load_runs(run))
    assert found.best[:, :2].tolist() == [[1.2, 2.0], [3.0, 3.0], [1.5, 1.5], [4.0, 4.0]]
    assert found.best[:, -1].tolist() == [1.8, 1.9, 0.0, 4.0]
    assert found.best_low[:, -1] == pytest.approx([1.782, 1.881, 0.0, 3.96])
    assert found.faster(0)[:, -1].tolist() == [True, True, False, True]
    assert found.kept[:, -1].tolist() == [1.8, 1.9, 1.0, 4.0]
    # Looked at after its first call alone, `a` has no second verdict.
    assert outcomes(load_runs(run), ["a"], 1).best.tolist() == [[1.2]]
    reported = {each.problem: each for each in report_on(load_run(run)).problems}
    assert reported["a"].speedup is not None and reported["a"].speedup.value == 1.8
    assert reported["b"].speedup is not None and reported["b"].best_call == 2
    assert reported["c"].speedup is None
