"""Candidates whose speed is known: what each side does, what is counted and printed."""

from __future__ import annotations

import time

import pytest
import torch

from evaluator.evaluation import Verdict
from experiments.bench.known_ratios import RatioRow, at_most, markdown, side
from tests.experiments.bench.test_tasks import TASK


def row(nominal: float, verdict: Verdict, speedup: float = 1.0) -> RatioRow:
    return RatioRow(
        problem="level3_1_net",
        nominal=nominal,
        true_ratio=nominal,
        verdict=verdict,
        speedup=speedup,
        speedup_low=speedup - 0.01,
        speedup_high=speedup + 0.01,
        pairs=30,
        wall_s=3.0,
    )


@pytest.mark.parametrize(
    ("ratio", "verdict", "right"),
    [
        (1.0, Verdict.SAME, True),
        (1.0, Verdict.FASTER, False),
        (1.05, Verdict.FASTER, True),
        (1.05, Verdict.SAME, False),
        (1 / 1.05, Verdict.SLOWER, True),
        (1 / 1.05, Verdict.FASTER, False),
        (1 / 1.05, Verdict.UNCLEAR, None),
    ],
)
def test_a_verdict_is_right_wrong_or_withheld(ratio, verdict, right):
    assert row(ratio, verdict).right is right


def test_the_bound_on_the_share_of_wrong_verdicts():
    """None of n: at most 1 - 0.05 ** (1 / n)."""
    assert at_most(0, 100) == pytest.approx(1 - 0.05 ** (1 / 100), abs=1e-6)
    assert at_most(1, 100) == pytest.approx(0.04656, abs=1e-4)
    assert at_most(3, 3) == 1.0


def test_the_table_counts_each_ratio():
    rows = [row(1.0, Verdict.SAME)] * 3 + [row(1.0, Verdict.FASTER, 1.05)]
    lines = markdown([], [*rows, row(1.05, Verdict.FASTER, 1.05)]).splitlines()
    assert lines[-2].startswith("| 1.000 | 1 | 4 | 1 | 3 | 0 | 0 | 1 |")
    assert "| 75 % |" in lines[-2]
    assert lines[-1].startswith("| 1.050 | 1 | 1 | 1 | 0 | 0 | 0 | 0 |")


def test_a_side_runs_the_module_and_waits():
    task = TASK.format(forward="self.calls = getattr(self, 'calls', 0) + 1\n        return x * 2")
    namespace: dict[str, object] = {}
    exec(side(task, "ModelNew", 2e4, 1.0, on_gpu=False), namespace)
    module = namespace["ModelNew"](8)  # type: ignore[operator]
    begin = time.perf_counter()
    assert torch.equal(module(torch.ones(2, 8)), torch.full((2, 8), 2.0))
    assert time.perf_counter() - begin >= 0.02
    assert module.task.calls == 1
    assert "torch.cuda._sleep(39600)" in side(task, "Model", 20.0, 1980.0, on_gpu=True)
