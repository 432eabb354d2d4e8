"""Known ratios on tasks: what each side does, and what is kept of it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import torch

from evaluator.evaluation import Verdict
from experiments.bench.network_ratios import (
    RATIOS,
    NetworkRun,
    markdown,
    measure,
    side,
)
from experiments.bench.suites.result_lines import ResultLines
from experiments.bench.suites.suite_run import suite_run
from tests.experiments.bench.test_tasks import TASK, suite


def test_a_side_runs_the_module_as_often_and_waits():
    task = TASK.format(forward="self.calls = getattr(self, 'calls', 0) + 1\n        return x * 2")
    namespace: dict[str, object] = {}
    exec(side(task, "ModelNew", 3, 2e4, 1.0, on_gpu=False), namespace)
    module = namespace["ModelNew"](8)  # type: ignore[operator]
    begin = time.perf_counter()
    assert torch.equal(module(torch.ones(2, 8)), torch.full((2, 8), 2.0))
    assert time.perf_counter() - begin >= 0.02
    assert module.task.calls == 3
    assert "torch.cuda._sleep(39600)" in side(task, "Model", 1, 20.0, 1980.0, on_gpu=True)


@pytest.mark.slow
def test_each_ratio_is_judged_and_its_truth_kept(tmp_path: Path):
    run = suite_run(
        suite(tmp_path / "suite", good="return self.linear(x).relu()"), "cpu", None, 0.1, None, None
    )
    lines = ResultLines(tmp_path / "ratios.jsonl", NetworkRun)
    assert measure(run, run.problems, 1, lines) == 1
    assert {(row.way, row.nominal) for row in lines.rows} == {
        (way, ratio) for way in ("spin", "repeats") for ratio in RATIOS
    }
    for row in lines.rows:
        assert row.true_ratio == pytest.approx(row.nominal, rel=0.02)
    assert len(ResultLines(tmp_path / "ratios.jsonl", NetworkRun).rows) == len(lines.rows)


def test_the_table_counts_right_unclear_and_wrong():
    run = NetworkRun(
        device="made up",
        true_ratio=1.05,
        verdict=Verdict.FASTER,
        speedup=1.05,
        speedup_low=1.04,
        speedup_high=1.06,
        pairs=30,
        disturbed_blocks=0,
        stopped="time",
        problem="level3_1_net",
        way="spin",
        nominal=1.05,
        wall_s=3.0,
    )
    others = [
        run.model_copy(update={"verdict": Verdict.UNCLEAR}),
        run.model_copy(update={"verdict": Verdict.SLOWER, "speedup_high": 1.045}),
    ]
    table = markdown([], [run, *others])
    assert "| 1.05 or its inverse | spin | 1 | 3 | 1 | 1 | 1 | 67 % |" in table
