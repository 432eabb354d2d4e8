"""Each task's own module as its candidate."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.evaluation import Status
from experiments.bench.suites.result_lines import ResultLines
from experiments.bench.suites.shrunk import shrunk
from experiments.bench.suites.suite_run import suite_run
from experiments.bench.tasks import CANNOT_BE_JUDGED, TaskRow, judge_tasks, markdown
from problems.errors import UsageError
from problems.loader import load_problem
from problems.sizes import SizeClass

PROGRAM = "python -m experiments.bench.tasks"
TASK = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, 70)

    def forward(self, x):
        {forward}

rows, features = 8, 8
batch = 1024 * 2
shape = (batch, features)

def get_inputs():
    return [torch.randn(*shape)]

def get_init_inputs():
    return [features]
"""


def suite(folder: Path, **forwards: str) -> Path:
    (folder / "level1").mkdir(parents=True)
    for number, (name, forward) in enumerate(forwards.items()):
        (folder / "level1" / f"{number}_{name}.py").write_text(TASK.format(forward=forward))
    return folder


@pytest.mark.thorough
def test_a_task_that_breaks_stops_nothing_and_none_is_judged_twice(tmp_path: Path):
    folder = suite(
        tmp_path / "suite", broken="raise ValueError('mine')", good="return self.linear(x).relu()"
    )
    run, _ = suite_run({"suite": folder, "device": "cpu", "timing_seconds": 0.1})
    out = tmp_path / "own.jsonl"
    judge_tasks(run, ResultLines(out, TaskRow))
    out.write_bytes(out.read_bytes() + b'{"problem": "level1')

    again = ResultLines(out, TaskRow)
    before = list(again.rows)
    judge_tasks(run, again)
    assert again.rows == before
    assert len(out.read_text().splitlines()) == 3

    broken, good = again.rows
    assert broken.status == CANNOT_BE_JUDGED
    assert broken.message.startswith("UnusableReferenceError: ") and "mine" in broken.message
    assert (good.problem, good.status, good.reference) == (
        "level1_1_good",
        Status.CORRECT,
        "fp64",
    )
    assert good.verdict is not None and 0 < good.verdict_s < good.wall_s
    assert "cannot be judged: 1 (level1_0_broken)" in markdown(again.parts, again.rows)


@pytest.mark.parametrize("text", ["{}\n", "no JSON\n", "no line", '{"machine": 3}\n', "[]\n"])
def test_a_file_of_something_else_is_never_written_over(text: str, tmp_path: Path):
    path = tmp_path / "other.jsonl"
    path.write_text(text)
    with pytest.raises(UsageError, match="other results"):
        ResultLines(path, TaskRow)
    assert path.read_text() == text


def test_sizes_are_cut_for_a_trial(tmp_path: Path):
    folder = suite(tmp_path / "suite", good="return self.linear(x) + 1024")
    source = shrunk(load_problem("1/0", folder), 64).reference(SizeClass.CPU)
    assert "batch = 64\n" in source
    assert "rows, features = (8, 8)\n" in source and "shape = (batch, features)" in source
    assert "+ 1024" in source
