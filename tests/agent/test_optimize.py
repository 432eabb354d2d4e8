import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.record.result import Stop
from evaluator.evaluation import Status
from tests.agent.relay_answers import answering
from tests.command import ROOT

NO_KERNEL = "I can't write kernels today."


@pytest.fixture
def relay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty relay, in a working directory of its own, on a machine without a GPU."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    folder = tmp_path / "relay"
    folder.mkdir()
    return folder


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


options = {"model": f"relay/{sys.argv[1]}", "budget": 1, "device": "cpu"}
first = optimize(Scaled(64), [torch.randn(32, 64)], **options)
again = optimize(Scaled(64), [torch.randn(32, 64)], **options)
assert first.turns == again.turns
assert (first.best_source, first.best_path, first.speedup) == (None, None, None)
print(first.details.problem, first.details.stop, *(turn.evaluation.status for turn in first.turns))
"""


@pytest.mark.thorough
def test_a_class_of_a_script_becomes_a_problem_of_its_own(relay: Path) -> None:
    script = relay.parent / "mine.py"
    script.write_text(SCRIPT)
    with answering(relay, NO_KERNEL) as asked:
        done = subprocess.run(
            [sys.executable, script.name, str(relay)],
            cwd=relay.parent,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    problem, *rest = done.stdout.split()
    assert rest == [Stop.CALLS, Status.NO_CODE]
    assert "self.eps = 1e-06" in (relay.parent / f"runs/problems/{problem}.py").read_text()
    prompt = (relay / f"{problem}-0-0.prompt.md").read_text()
    assert "torch.full((64,), 1.0)" in prompt and "argparse" not in prompt
    assert len(asked) == 1
