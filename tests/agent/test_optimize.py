import os
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.evaluation import Status
from tests.command import ROOT

SCRIPT = """
import argparse, sys

import torch
from kernel_refinery import optimize
from torch import nn


class Scaled(nn.Module):
    def __init__(self, size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


result = optimize(Scaled(64), [torch.randn(32, 64)], budget=1, device="cpu", timing_seconds=0.2)
(turn,) = result.turns
assert result.best_path is None or result.best_source == result.best_path.read_text()
print(result.details.problem, turn.evaluation.status)
"""


@pytest.mark.thorough
def test_a_class_of_a_script_becomes_a_problem_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "mine.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    problem, status = done.stdout.split()
    assert status == Status.CORRECT
    source = (tmp_path / f"runs/problems/{problem}.py").read_text()
    assert "self.eps = 1e-06" in source and "torch.full((64,), 1.0)" in source
    assert "argparse" not in source
