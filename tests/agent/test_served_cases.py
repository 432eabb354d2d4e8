"""The whole main job with nothing replaced, for a problem that lists its sizes: the tuner, real
builds, the judge, the profiler."""

import subprocess
import sys
from pathlib import Path

import pytest

from agent.record.run_files import RunFiles
from tests.command import ROOT, command, refused

PROGRAM = """
import sys
from evaluator.command.command_line import serve
from agent.run import command
code = serve(command, "agent.run", sys.argv[1:])
print({"torch", "ray"} & set(sys.modules), file=sys.stderr)
sys.exit(code)
"""

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
    words += ["--temperature", 0]  # others of the tuner's drafts may fail, on purpose
    run = [sys.executable, "-c", PROGRAM, *map(str, words), "--require-correct"]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "set()", "imported by the agent's process"
    assert (tmp_path / "run" / "best" / "served.py").read_text().startswith("# plan: ")
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
        assert record.evaluation.build is not None
    *_, confirmation = files.confirmations("served")
    assert all(case.timing is not None for case in confirmation.evaluation.cases)
    before, after = (files.prompt(record.prompt) for record in (first, second))
    assert TOLD in before and TOLD in after and "\nbatch = 32\n" in after
    assert "## What execution said" not in before
    for heading in ("What execution said", "The kernel to refine", "What the profiler said"):
        assert f"\n## {heading}\n" in after
    lines = [f"\n  - {case.words}\n" for case in first.evaluation.cases]
    assert all(line in after and line not in before for line in lines)
    assert "batch=1, weight 0.1: right, not timed in the search" in lines[2]
    said = command("agent.show", tmp_path / "run", "--turn", "0").stdout
    assert all(line.strip() in said for line in lines)


def test_wrong_cases_end_the_command(tmp_path: Path) -> None:
    file = tmp_path / "served.py"
    file.write_text(PROBLEM.replace('"batch": 4', '"depth": 4'))
    assert "the sizes name 'depth'" in refused("agent.run", "--problem", file, "--dry-run")
