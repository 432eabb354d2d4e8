"""KernelBench's evaluator, run several times: a stand-in for it, in real processes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from experiments.bench.kernelbench_runs import app

EVALUATOR = """
import os
from types import SimpleNamespace
import pydra

def eval_kernel_against_ref(problem, kernel, *, seed_num, num_correct_trials, build_dir, **_):
    assert num_correct_trials == 5 and pydra.main() is None
    if "dies" in kernel:
        os._exit(3)
    if "raises" in kernel:
        raise ValueError("not today")
    return SimpleNamespace(
        compiled=True, correctness=problem in kernel, metadata={"seed": seed_num}
    )
"""
KERNELS = {1: "right here", 2: "another", 3: "dies", 4: "raises"}


@pytest.mark.slow
def test_each_kernel_is_evaluated_in_each_run(tmp_path: Path) -> None:
    for folder in ("src/kernelbench", "kernels", "problems/level1"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "src/kernelbench/eval.py").write_text(EVALUATOR)
    for number, text in KERNELS.items():
        name = f"level_1_problem_{number}_sample_0_kernel.py"
        (tmp_path / "kernels" / name).write_text(text)
        (tmp_path / "problems/level1" / f"{number}_task.py").write_text("right")
    words = ["src", "kernels", "problems", "out.jsonl"]
    options = ["--runs", "2", "--builds", "2", "--scratch", str(tmp_path / "builds")]
    done = CliRunner().invoke(app, [*(str(tmp_path / word) for word in words), *options])
    assert done.exit_code == 0, done.output
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["seed"] for line in lines] == [41] * 4 + [42] * 4 + [43] * 4
    assert [line["verdict"] for line in lines] == ["correct", "mismatch", "died", "raised"] * 3
    assert sum(line.get("while_building", False) for line in lines) == 4


def test_a_folder_that_is_not_kernelbenchs_is_a_mistake_of_usage(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, [str(tmp_path)] * 3 + [str(tmp_path / "out.jsonl")])
    assert "name KernelBench's folder src" in str(done.exception)
