"""A run for a problem that lists the sizes that it is served at: the tuner, and real verdicts."""

from pathlib import Path

import pytest

from agent.record.run_files import RunFiles
from tests.command import command, refused

PROBLEM = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + 1e-6) * self.weight


CASES = [{"batch": 4, "weight": 1}, {"batch": 32, "weight": 8}, {"batch": 1, "weight": 1}]
batch = 8


def get_inputs():
    return [torch.randn(batch, 256)]


def get_init_inputs():
    return [256]
"""
TOLD = """\
- The sizes above are one case of 3. `ModelNew` must be right in each. The sum of \
weight x time counts:
  - batch=32: weight 0.8 (shown above)
  - batch=4: weight 0.1
  - batch=1: weight 0.1
- Branch on shapes; where PyTorch is faster, call it."""


@pytest.mark.thorough
def test_all_cases_are_verified_and_the_second_verdict_times_all(tmp_path: Path) -> None:
    (tmp_path / "served.py").write_text(PROBLEM)
    words = ["--problem", tmp_path / "served.py", "--device", "cpu", "--output", tmp_path / "run"]
    words += ["--search-cases", 2, "--budget", 2, "--timing-seconds", 0.3, "--no-audit"]
    done = command("agent.run", *words, "--require-correct")
    assert done.returncode == 0, done.stderr
    files = RunFiles(tmp_path / "run")
    first, second = files.turns()
    kernel = files.kernel(first.candidate)
    assert "if x.shape != (32, 256):" in kernel and "self.in_pytorch(x)" in kernel
    for record in (first, second):
        heavy, middle, light = record.evaluation.cases
        assert (heavy.name, middle.name, light.name) == ("batch=32", "batch=4", "batch=1")
        assert light.timing is None
        assert record.evaluation.timing.calls == heavy.timing.calls + middle.timing.calls
        assert record.profile.latency_us == heavy.timing.latency_us
    *_, confirmation = files.confirmations("served")
    assert all(case.timing is not None for case in confirmation.evaluation.cases)
    before, after = (files.prompt(record.prompt) for record in (first, second))
    assert TOLD in before and TOLD in after and "\nbatch = 32\n" in after
    lines = [f"\n  - {case.words}\n" for case in first.evaluation.cases]
    assert all(line in after and line not in before for line in lines)
    assert "batch=1, weight 0.1: right, not timed in the search" in lines[2]
    said = command("agent.show", tmp_path / "run", "--turn", "0").stdout
    assert all(line.strip() in said for line in lines)


def test_wrong_cases_end_the_command(tmp_path: Path) -> None:
    file = tmp_path / "served.py"
    file.write_text(PROBLEM.replace('"batch": 4', '"depth": 4'))
    assert "the sizes name 'depth'" in refused("agent.run", "--problem", file, "--dry-run")
