from pathlib import Path
from statistics import geometric_mean

import pytest

from experiments.analysis.measures import MEASURES, Measure
from experiments.analysis.outcomes import Outcomes, outcomes
from experiments.analysis.statistics import Estimate, Resamples
from experiments.runs import load_runs
from tests.experiments.made_runs import made_run


def measure(key: str) -> Measure:
    return next(entry for entry in MEASURES if entry.key == key)


def estimate(key: str, reached: Outcomes) -> Estimate:
    entry = measure(key)
    table = entry.table(reached)
    covered = entry.covered(table)
    return entry.estimates(table[covered], Resamples.of(int(covered.sum())))[-1]


@pytest.fixture
def reached(tmp_path: Path) -> Outcomes:
    results = {"a": [2.0, None], "b": [0.5, "wrong"], "c": [None, None], "d": [4.0, 8.0]}
    return outcomes(load_runs(made_run(tmp_path / "run", results)))


def test_the_figures_are_what_they_say(reached: Outcomes):
    values = {entry.key: estimate(entry.key, reached).value for entry in MEASURES}
    assert values == {
        "fast_0": 0.75,
        "fast_1": 0.5,
        "fast_1.5": 0.5,
        "fast_2": 0.25,
        "clear_1": 0.5,
        "clear_1.5": 0.5,
        "clear_2": 0.25,
        "correct_answers": pytest.approx((0.5 + 0.5 + 0 + 1) / 4),
        "speedup_kept": pytest.approx(geometric_mean([2, 1, 1, 8])),
        "speedup_solved": pytest.approx(geometric_mean([2, 0.5, 8])),
        "memory": pytest.approx(1.5),
        "tokens": 2600,
        "cost_usd": 0,
        "seconds_wall": 12,
        "seconds_device": 0,
    }


def test_only_the_mean_over_the_solved_leaves_problems_out(reached: Outcomes):
    left = {entry.key for entry in MEASURES if not entry.covered(entry.table(reached)).all()}
    assert left == {"speedup_solved", "memory"}
