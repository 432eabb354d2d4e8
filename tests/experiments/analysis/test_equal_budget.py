from pathlib import Path

import numpy as np
import pytest

from experiments.analysis.equal_budget import Currency, at_budgets, by_search
from experiments.analysis.measures import FAST_1, KEPT, measure_of
from experiments.analysis.outcomes import outcomes
from experiments.runs import load_runs
from tests.experiments.analysis.test_outcomes import judged_again
from tests.experiments.made_runs import made_run

SECONDS = {"model": 1.0, "build": 0.0, "judge": 1.0, "profile": 3.0, "device": 0.5}


@pytest.mark.parametrize(
    ("currency", "of_a_call"),
    [("calls", 1), ("tokens", 1300), ("seconds_wall", 5.0), ("seconds_device", 3.5)],
)
def test_a_call_counts_where_it_ended_within_the_budget(
    tmp_path: Path, currency: Currency, of_a_call: float
):
    """Device seconds hold the profiling as well: a profile holds the device."""
    run = made_run(tmp_path / "run", {"a": [1.2, None, 2.0], "b": ["wrong"]}, seconds=SECONDS)
    reached = outcomes(load_runs(run))
    budgets = np.array([0.5, 1, 2.9, 3, 9]) * of_a_call
    kept = np.exp(at_budgets(reached, KEPT, currency, budgets))
    assert kept == pytest.approx(np.array([[1, 1.2, 1.2, 2, 2], [1, 1, 1, 1, 1]]))
    fast = at_budgets(reached, FAST_1, currency, budgets)
    assert fast.tolist() == [[0, 1, 1, 1, 1], [0, 0, 0, 0, 0]]
    solved = at_budgets(reached, measure_of("speedup_solved"), currency, budgets)
    assert np.isnan(solved[0]).tolist() == [True, False, False, False, False]


def test_an_unknown_price_is_no_budget(tmp_path: Path):
    usage = {"prompt_tokens": 5, "completion_tokens": 5, "cost_usd": None}
    reached = outcomes(load_runs(made_run(tmp_path / "run", {"a": [1.5]}, usage=usage)))
    assert np.isnan(at_budgets(reached, FAST_1, "cost_usd", np.array([1.0]))).all()


def test_by_the_search_a_second_verdict_lowers_nothing_but_strikes(tmp_path: Path):
    run = made_run(tmp_path / "run", {"a": [1.2, 2.0], "b": [3.0, 2.5], "c": [1.5, None]})
    judged_again(run, "a", {1: 1.1})
    judged_again(run, "b", {0: None, 1: 2.0})
    judged_again(run, "c", {0: None})
    found = outcomes(by_search(load_runs(run)))
    assert found.best.tolist() == [[1.2, 2.0], [0.0, 2.5], [0.0, 0.0]]
    assert found.solved[:, -1].tolist() == [True, True, False]
