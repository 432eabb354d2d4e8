import json
from pathlib import Path

import pytest
import torch

from evaluator.judge.explaining.reference_modes import to_tf32
from experiments.bench.audit import Finding, audit
from experiments.bench.cheats import Cheat
from problems.loader import load_problem, load_suite
from tests.command import command, refused
from tests.task import task

HEAD = task("{body}", init="self.bias = nn.Parameter(torch.zeros(64))", x="{inputs}")


def _audited(tmp_path: Path, body: str, inputs: str = "torch.randn(96, 64)") -> dict[str, Finding]:
    path = tmp_path / "problem.py"
    path.write_text(HEAD.format(body=body, inputs=inputs))
    return {finding.cheat: finding for finding in audit(load_problem(str(path)))}


def _unsound(findings: dict[str, Finding]) -> set[str]:
    return {cheat for cheat, finding in findings.items() if not finding.sound}


def test_a_sound_problem_refuses_every_cheat(tmp_path: Path) -> None:
    findings = _audited(tmp_path, "return torch.tanh(x + self.bias)")
    assert list(findings) == list(Cheat)
    assert _unsound(findings) == set()
    assert {f.result for cheat, f in findings.items() if cheat != "honest"} == {"refused"}
    assert findings["honest"].result == "accepted"
    assert findings["half_input"].attempts == 2


@pytest.mark.parametrize(
    ("body", "inputs", "cheats"),
    [
        ("return (x + self.bias) * 0.0", "torch.randn(96, 64)", {"zeros", "constant", "stale"}),
        ("return x + 0.0 * self.bias", "torch.randn(96, 64)", {"input", "parameter"}),
        ("return x[:, :32] * self.bias[:32]", "torch.randn(96, 64)", {"half_input"}),
        ("return torch.relu(x) + self.bias", "2.0 ** torch.randint(-3, 4, (96, 64))", {"bf16"}),
        ("return x + self.bias", "torch.ones(96, 64)", {"stale", "tf32"}),
    ],
)
def test_an_unsound_problem_is_found(
    tmp_path: Path, body: str, inputs: str, cheats: set[str]
) -> None:
    if "bf16" in cheats or "tf32" in cheats:  # exact in few bits: the bias must be so too
        body = body.replace("self.bias", "self.bias.sign()")
    assert cheats <= _unsound(_audited(tmp_path, body, inputs))


def test_what_does_not_apply_says_why(tmp_path: Path) -> None:
    findings = _audited(tmp_path, "return torch.argmax(x, dim=1)")
    for cheat, reason in {
        "tf32": "the outputs are integers",
        "input": "no input has an output's size and dtype",
    }.items():
        assert findings[cheat].result == "not_applicable"
        assert findings[cheat].detail == reason
    assert findings["parameter"].result == "accepted"


def test_a_module_that_raises_on_half_an_input_is_told(tmp_path: Path) -> None:
    body = "return torch.linalg.cholesky(x) + self.bias"
    spd = "torch.eye(64) + 0.1 * torch.rand(1, 1) * torch.ones(64, 64)"
    finding = _audited(tmp_path, body, spd)["half_input"]
    assert finding.result == "not_applicable"
    assert "raises without half of input 0" in finding.detail


def test_one_faked_output_of_several_is_found(tmp_path: Path) -> None:
    findings = _audited(tmp_path, "return torch.tanh(x + self.bias), x.sum(dim=1) * 0.0")
    assert findings["zeros"].result == "accepted"
    assert findings["zeros"].detail == "output 1"


def test_a_problem_that_can_not_run_is_told(tmp_path: Path) -> None:
    findings = _audited(tmp_path, "return x @ x")
    assert set(findings) == {"load"}
    assert findings["load"].result == "unusable"
    assert not findings["load"].sound


def test_tf32_keeps_ten_bits_of_mantissa() -> None:
    x = torch.randn(10000) * torch.exp(3 * torch.randn(10000))
    rounded = to_tf32(x)
    off = ((rounded - x) / x).abs()
    assert 2**-12 < float(off.max()) <= 2**-11
    assert torch.equal(to_tf32(rounded), rounded)


def test_the_command_line_on_one_of_ours() -> None:
    done = command("experiments.bench.audit", "--problem", "level1/10", "--json")
    assert done.returncode == 0
    findings = [Finding.model_validate(json.loads(line)) for line in done.stdout.splitlines()]
    assert [finding.cheat for finding in findings] == list(Cheat)
    assert {finding.problem for finding in findings} == {"level1_10_row_moments"}


def test_the_exit_code_is_the_verdict(tmp_path: Path) -> None:
    path = tmp_path / "zero.py"
    path.write_text(HEAD.format(body="return x * 0.0", inputs="torch.randn(96, 64)"))
    done = command("experiments.bench.audit", "--problem", str(path))
    assert done.returncode == 1
    assert "UNSOUND: zeros accepted (output 0)" in done.stdout


@pytest.mark.parametrize("arguments", [["--problem", "nothing"], ["--device", "cuda:99"]])
def test_a_mistake_is_one_line_and_exit_code_2(arguments: list[str]) -> None:
    refused("experiments.bench.audit", *arguments)


SMALL = ("1/9", "1/13", "2/15", "3/3", "3/5")


@pytest.mark.parametrize("ref", SMALL)
def test_some_of_our_problems_are_sound(ref: str) -> None:
    findings = list(audit(load_problem(ref)))
    assert [finding for finding in findings if not finding.sound] == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_all_of_our_problems_are_sound(seed: int) -> None:
    for problem in load_suite():
        assert [finding for finding in audit(problem, seed=seed) if not finding.sound] == []


@pytest.mark.gpu
def test_all_of_our_problems_are_sound_at_gpu_sizes() -> None:
    for problem in load_suite():
        found = [finding for finding in audit(problem, device="cuda:0") if not finding.sound]
        torch.cuda.empty_cache()
        assert found == []
