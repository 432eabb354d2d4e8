"""CUDA-L1's file format: one command from their file to an adjudication."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import command, refused
from tests.evaluator.batch.test_kernel_folder import RIGHT, TASK

MODULE = "experiments.bench.cuda_l1"


def task(number: int, kernel: str | None) -> str:
    claim = 1.5 if kernel else None
    return json.dumps(
        {
            "level_id": 1,
            "task_id": number,
            "ref_code": TASK,
            "custom_code": kernel,
            "score_default": claim,
        }
    )


@pytest.mark.thorough
def test_from_their_file_to_an_adjudication(tmp_path: Path) -> None:
    published = tmp_path / "h100.json"
    published.write_text("\n".join([task(1, RIGHT), task(2, RIGHT), task(3, None)]))
    out = tmp_path / "out"
    done = command(
        MODULE, published, out, "--tasks", "odd", "--device", "cpu", "--timing-seconds", "0.2"
    )
    assert done.returncode == 0, done.stderr
    assert "claims: 1 of 1 kernels have one" in done.stderr
    whole = json.loads((out / "kernels" / "adjudication.json").read_text())
    (row,) = whole["kernels"]
    assert (row["problem"], row["claimed"]) == ("level1_1_task", 1.5)


def test_another_file_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text('{"level_id": 1}\n')
    assert "is not a file of CUDA-L1" in refused(MODULE, other, tmp_path / "out")
