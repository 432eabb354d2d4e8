"""A suite in KernelBench's format that is not ours, through the commands as one types them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from agent.record.turn_log import read_turns
from tests.command import ROOT, command

SUITE = ROOT / "tests" / "data" / "suite"


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    """The problems themselves as kernels, under KernelBench's names."""
    folder = tmp_path / "kernels"
    folder.mkdir()
    for problem in SUITE.rglob("*.py"):
        stem = f"level_{problem.parent.name[5:]}_problem_{problem.name.partition('_')[0]}"
        text = problem.read_bytes().decode().replace("\r\n", "\n")
        right = re.sub(r"(class |super\()Model\b", r"\1ModelNew", text)
        (folder / f"{stem}_sample_0_kernel.py").write_text(right)
    (folder / "notes.txt").write_text("no kernel")
    return folder


@pytest.mark.slow
def test_a_folder_of_kernels_is_judged(kernels: Path) -> None:
    options = ("--suite", SUITE, "--device", "cpu", "--timing-seconds", "0.2")
    done = command("evaluator.check", kernels, *options, "--json")
    assert done.returncode == 0, done.stderr
    assert "7 of 7 kernels are correct" in done.stderr.splitlines()
    assert [json.loads(line)["kernel"] for line in done.stdout.splitlines()] == [
        f"level_{level}_problem_{number}_sample_0_kernel.py"
        for level, number in ((1, 1), (1, 19), (1, 40), (1, 89), (1, 95), (2, 7), (4, 2))
    ]
    assert str(ROOT) not in done.stdout, "nothing of this machine"


@pytest.mark.slow
def test_the_main_job_takes_a_turn_on_every_problem(tmp_path: Path) -> None:
    options = ("--feedback", "none", "--backend", "cpp", "--device", "cpu")
    quick = ("--budget", "1", "--timing-seconds", "0.2", "--confirm", "0")
    done = command(
        "agent.run", "--suite", SUITE, *options, *quick, "-o", tmp_path / "run", "--json"
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["problems"]
    assert [(one["problem"], one["stop"]) for one in found] == [
        ("level1_1_Square_matrix_multiplication_", "calls"),
        ("level1_19_ReLU", "calls"),
        ("level1_40_TopK_and_norm", "calls"),
        ("level1_89_Lookup_and_count", "calls"),
        ("level1_95_CrossEntropyLoss", "calls"),
        ("level2_7_Conv2d_BatchNorm_Bias_Scale", "calls"),
        ("level4_2_Windows_line_ends", "calls"),
    ]
    turns = list(read_turns(tmp_path / "run"))
    assert {turn.suite for turn in turns} == {"suite"}
    assert "correct" in {turn.evaluation.status for turn in turns}
    assert "7 problems" in done.stderr
    assert f"--suite {SUITE}" in done.stderr  # the line that judges the best kernel once more


@pytest.mark.slow
def test_every_command_takes_the_suite(kernels: Path) -> None:
    suite = ("--suite", SUITE)
    kernel = kernels / "level_1_problem_19_sample_0_kernel.py"
    one = ("--problem", "1/19", *suite, "--device", "cpu", "--json")

    listed = command("problems.list", *suite, "--level", "2", "--json")
    assert json.loads(listed.stdout)["id"] == "level2_7_Conv2d_BatchNorm_Bias_Scale"
    checked = command("evaluator.check", kernel, *one, "--timing-seconds", "0.2")
    assert json.loads(checked.stdout)["status"] == "correct", checked.stderr
    profiled = command("tools.profile", kernel, *one)
    assert json.loads(profiled.stdout)["rung"] == "cpu", profiled.stderr
    planned = command("agent.run", *one, "--dry-run")
    (problem,) = json.loads(planned.stdout)["problems"]
    assert (problem["id"], problem["suite"]) == ("level1_19_ReLU", "suite")
