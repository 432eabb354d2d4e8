"""Outcomes by name, against a table by hand with ties and failures."""

import math
from pathlib import Path

import numpy as np
import pytest

from agent.record.turn import TurnRecord
from evaluator.evaluation import Verdict
from evaluator.settings import BaselineName
from experiments.analysis.measures import measure_of
from experiments.analysis.outcomes import Outcomes, outcomes
from experiments.runs import load_runs
from tests.evaluator.made_evaluations import baseline
from tests.experiments.made_runs import made_turn, write_run

# problem: speedup over eager, over torch.compile (None: no kernel), share of the speed of light.
BY_HAND = {
    "tie": (1.0, 2.0, 0.5),
    "fast": (1.5, 0.9, 0.8),
    "slow": (0.5, 0.4, 0.1),
    "best": (3.0, 1.2, 0.9),
    "failed": (None, None, None),
}


def against(turn: TurnRecord, compiled: float | None, sol: float | None) -> TurnRecord:
    timing = turn.evaluation.timing
    if timing is None:
        return turn
    baselines = dict(timing.baselines)
    if compiled is not None:
        wide = {"low": compiled * 0.95, "high": compiled * 1.05}
        baselines[BaselineName.COMPILE] = baseline(compiled, 1.0, **wide, verdict=Verdict.FASTER)
    changed = timing.model_copy(update={"baselines": baselines, "sol_fraction": sol})
    evaluation = turn.evaluation.model_copy(update={"timing": changed})
    return turn.model_copy(update={"evaluation": evaluation})


@pytest.fixture
def reached(tmp_path: Path) -> Outcomes:
    turns = [
        against(made_turn(name, 0, speedup), compiled, sol)
        for name, (speedup, compiled, sol) in BY_HAND.items()
    ]
    return outcomes(load_runs(write_run(tmp_path / "run", turns)))


@pytest.mark.parametrize(
    ("key", "faster"),
    [
        ("fast_0", {"tie", "fast", "slow", "best"}),
        ("fast_1", {"fast", "best"}),
        ("fast_0.99", {"tie", "fast", "best"}),
        ("fast_1.5", {"best"}),
        ("clear_1.45", {"fast", "best"}),
        ("clear_1.49", {"best"}),
        ("fast_1_compile", {"tie", "best"}),
        ("clear_1.15_compile", {"tie"}),
        ("fast_1_pytorch", {"best"}),
        ("fast_0.85_pytorch", {"tie", "fast", "best"}),
        ("clear_0.9_pytorch", {"tie", "best"}),
        ("fast_0.5_bound", {"fast", "best"}),
        ("fast_0.9_bound", set()),
    ],
)
def test_a_share_is_that_of_the_table_by_hand(reached: Outcomes, key: str, faster: set[str]):
    measure = measure_of(key)
    found = measure.table(reached)[:, -1]
    assert {name for name, hit in zip(BY_HAND, found, strict=True) if hit == 1} == faster
    assert measure.key == key
    assert not np.isnan(found).any(), "a failure counts, also against another rival"


def test_the_share_of_the_speed_of_light_counts_failures_as_nothing(reached: Outcomes):
    assert measure_of("sol_fraction").table(reached)[:, -1].mean() == pytest.approx(2.3 / 5)
    assert measure_of("built_answers").table(reached)[:, -1].mean() == 0.8


def test_a_kernel_that_was_not_timed_against_a_rival_is_left_out(tmp_path: Path):
    turns = [
        against(made_turn("known", 0, 2.0), 1.5, None),
        against(made_turn("unknown", 0, 2.0), None, None),
        made_turn("failed", 0, None),
    ]
    found = outcomes(load_runs(write_run(tmp_path / "run", turns)))
    measure = measure_of("fast_1_compile")
    table = measure.table(found)
    assert measure.covered(table).tolist() == [True, False, True]
    assert table[0, 0] == 1 and math.isnan(table[1, 0]) and table[2, 0] == 0


@pytest.mark.parametrize("key", ["fast", "fast_-1", "clear_1_bound", "fast_1_tpu", "speed"])
def test_what_is_no_outcome_is_said_in_one_line(key: str):
    with pytest.raises(ValueError, match="is no outcome; write fast_P") as raised:
        measure_of(key)
    assert "\n" not in str(raised.value)
