"""What a kernel costs, against a table by hand; and the coverage of its interval."""

import math
from pathlib import Path

import numpy as np
import pytest

from agent.record.completion import Usage
from experiments.analysis.outcomes import outcomes
from experiments.analysis.statistics import Resamples
from experiments.runs import load_runs
from experiments.study.condition_report import costs_of
from tests.experiments.made_runs import made_run


def usage(usd: float | None) -> dict[str, object]:
    return Usage(prompt_tokens=900, completion_tokens=100, cost_usd=usd).model_dump()


def test_the_costs_are_those_of_the_table_by_hand(tmp_path: Path):
    seconds = {"model": 1.0, "build": 2.0, "judge": 3.0, "profile": 4.0, "device": 0.5}
    runs = [
        outcomes(
            load_runs(made_run(tmp_path / str(seed), results, usage=usage(0.25), seconds=seconds))
        )
        for seed, results in enumerate(
            [
                {"a": [None, 2.0], "b": [0.5, 0.5], "c": ["wrong", None]},
                {"a": [1.5, 2.0], "b": [None, None], "c": ["wrong", None]},
            ]
        )
    ]
    found = {each.figure: each.estimate for each in costs_of(runs)}
    # 12 calls; 3 problems (and seeds) solved, 2 of them faster than eager.
    for currency, total in (
        ("calls", 12),
        ("tokens", 12_000),
        ("cost_usd", 3.0),
        ("seconds_wall", 120.0),
        ("seconds_device", 54.0),
    ):
        correct, faster = (found[f"{currency}_per_{kind}"] for kind in ("correct", "faster"))
        assert correct is not None and faster is not None
        assert correct.value == pytest.approx(total / 3)
        assert faster.value == pytest.approx(total / 2)
        assert faster.high is None, "some draws of problems reach nothing"


def test_what_was_not_spent_is_left_out_and_what_is_not_known_is_unknown(tmp_path: Path):
    free = outcomes(load_runs(made_run(tmp_path / "free", {"a": [1.5]}, usage=usage(0.0))))
    assert not any(each.figure.startswith("cost_usd") for each in costs_of([free]))
    unpriced = outcomes(load_runs(made_run(tmp_path / "un", {"a": [1.5]}, usage=usage(None))))
    dollars = [each.estimate for each in costs_of([unpriced]) if each.unit == "usd"]
    assert dollars == [None, None]


def test_nothing_reached_has_no_price() -> None:
    assert math.isnan(Resamples.of(3).quotient(np.ones(3), np.zeros(3)).value)


def test_the_interval_of_a_quotient_covers_about_95_percent():
    """With 600 trials three standard deviations of the binomial are 2.7 points; the bootstrap of a
    ratio of skewed sums may lose two more."""
    generator = np.random.default_rng(0)
    resamples = Resamples.of(40, seed=1, draws=1000)
    hits = 0
    for _ in range(600):
        spent = generator.exponential(10.0, size=40)
        reached = (generator.random(40) < 0.5).astype(float)
        found = resamples.quotient(spent, reached)
        hits += found.low <= 20.0 <= found.high
    assert 0.95 - 0.047 <= hits / 600 <= 0.95 + 0.027
