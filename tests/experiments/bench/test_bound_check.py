"""Is a bound beaten? What the command times, keeps, counts and prints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from experiments.bench.bound_check import Row, faults, read, table
from tests.task import task

PROBLEM = task("return torch.relu(x)", x="torch.randn(256, 256)")
CEILINGS = """
import torch
from experiments.bench import bound_check
from evaluator.judge.bounds import ceilings
torch.set_num_threads(1)
ceilings._SECONDS = 0.0
bound_check._COPY_BYTES["cpu"] = 2**20
bound_check._PRODUCTS["cpu"] = 128
bound_check.typer.run(bound_check.main)
"""


def row(least_us: float, bound_us: float = 100.0, **changes: object) -> Row:
    made = {"device": "made up", "kind": "problem", "name": "p", "floor_us": 50.0}
    times = {"least_us": least_us, "median_us": least_us, "bound_us": bound_us}
    return Row.model_validate(made | times | changes)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (row(101.0), []),
        (row(99.0), ["problem p (eager) beats the bound: 101.0 %"]),
        (row(49.0), ["problem p (eager) is below the floor"]),
        (row(300.0), []),
        (row(110.0, kind="copy", name="float32"), []),
        (row(120.0, kind="copy"), ["copy p (eager) reaches 83.3 % of the bound"]),
        (row(0.0, error="no memory"), ["problem p (eager) was not timed: no memory"]),
    ],
)
def test_what_does_not_hold_is_said(made: Row, said: list[str]) -> None:
    assert list(faults([made])) == said


def test_the_table_begins_with_the_nearest() -> None:
    lines = table([row(400.0, name="far"), row(125.0, name="near", floor_us=None)]).splitlines()
    assert lines[2] == "| problem near | eager | 125.0 | 100.0 | - | 80 % |"
    assert lines[3].startswith("| problem far | eager | 400.0 | 100.0 | 50.0 | 25 % |")
    assert len(lines) == 4


@pytest.mark.slow
def test_a_suite_is_timed_once(tmp_path: Path) -> None:
    level = tmp_path / "suite" / "level1"
    level.mkdir(parents=True)
    (level / "1_relu.py").write_text(PROBLEM)
    (level / "2_broken.py").write_text(PROBLEM.replace("torch.relu(x)", "x.no_such_method()"))
    out = tmp_path / "rows.jsonl"
    command = [sys.executable, "-c", CEILINGS, "--suite", str(tmp_path / "suite")]
    command += ["--device", "cpu", "--out", str(out)]
    # One-sided: at these sizes and this haste no bound means anything.
    first = subprocess.run(command, capture_output=True, text=True, check=False)
    assert first.returncode in (0, 1), first.stderr
    rows = {(made.kind, made.name): made for made in read(out)}
    assert len(rows) == 5
    assert rows["problem", "level1_1_relu"].least_us > 0
    assert rows["problem", "level1_1_relu"].bytes_us is not None
    assert "no_such_method" in rows["problem", "level1_2_broken"].error
    assert "was not timed: AttributeError" in first.stdout
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.stderr == ""
    assert again.stdout == first.stdout
