"""KernelBench-X's protocol: its test decides, its sweep is timed, our own checks are findings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from evaluator.evaluation import Backend, Candidate, Evaluation, EvaluationRequest, Status
from evaluator.executor.local import LocalExecutor
from evaluator.judge.correctness.comparison import compare
from evaluator.protocol import RULES
from evaluator.settings import Precision, Settings
from problems.loader import load_problem

TASK = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.exp(x) * 2.0

rows = 64
CASES = [{"rows": 64}, {"rows": 32}]
HIDDEN_SIZES = [{"rows": 5}, {"rows": 7}]

def get_inputs():
    return [torch.randn(rows, 512)]

def get_init_inputs():
    return []
"""
RIGHT = "return torch.exp(x) * 2.0"

Judged = Callable[..., Evaluation]


@pytest.fixture
def judged(executor: LocalExecutor, tmp_path: Path) -> Judged:
    def judge(forward: str, protocol: str = "kernelbench-x", **settings: object) -> Evaluation:
        (tmp_path / "task.py").write_text(TASK)
        body = "\n        ".join(forward.splitlines())
        head, _, _ = TASK.partition("return torch")
        source = (head + body + "\n").replace("Model(", "ModelNew(")
        asked = Settings.model_validate(
            {"timing_seconds": 0.1, "audit": "never", "protocol": protocol, **settings}
        )
        candidate = Candidate(source=source, backend=Backend.CPP)
        problem = load_problem(str(tmp_path / "task.py"))
        return executor.evaluate(EvaluationRequest.of(problem, asked, candidate=candidate))

    return judge


def found(evaluation: Evaluation) -> list[str]:
    return [finding.partition(":")[0] for finding in evaluation.findings]


def test_the_test_decides_and_the_sweep_is_timed(judged: Judged) -> None:
    evaluation = judged(RIGHT)
    assert (evaluation.status, evaluation.findings) == (Status.CORRECT, ()), evaluation
    assert [case.name for case in evaluation.cases] == ["rows=64", "rows=32"]
    times = [case.timing for case in evaluation.cases if case.timing]
    eager = sum(t.baselines["eager"].latency_us for t in times)
    assert evaluation.timing is not None
    assert evaluation.timing.baselines["eager"].latency_us == pytest.approx(eager / 2)
    assert len(set(evaluation.seeds)) == 1
    wrong = judged("return torch.exp(x) * 2.0 + (x.shape[0] == 7) * 1e-3")
    assert (wrong.status, wrong.reason, wrong.case) == (
        Status.INCORRECT,
        "wrong_values",
        "the test's sizes",
    )


@pytest.mark.parametrize(
    ("forward", "finding"),
    [
        ("return torch.exp(x) * (2.0 if x.shape[0] < 60 else 1.0)", "wrong_later"),
        ("return torch.exp(x)[: x.shape[0] if x.shape[0] < 60 else 1] * 2.0", "wrong_later"),
        ("if x.shape[0] > 60:\n    raise ValueError('large')\n" + RIGHT, "forward_raised"),
        (
            "if not hasattr(self, 'kept'):\n    self.kept = {}\n"
            "if x.shape not in self.kept:\n    self.kept[x.shape] = torch.exp(x) * 2.0\n"
            "return self.kept[x.shape].clone()",
            "kept_address",
        ),
    ],
)
def test_what_their_test_does_not_see_is_a_finding(
    judged: Judged, forward: str, finding: str
) -> None:
    assert judged(forward, "refinery").status is not Status.CORRECT
    evaluation = judged(forward)
    assert evaluation.status is Status.CORRECT, evaluation.message
    assert finding in found(evaluation), evaluation.findings
    assert evaluation.timing is not None
    raised = finding == "forward_raised"
    assert [case.name for case in evaluation.cases] == ["rows=64", "rows=32"][raised:]


def test_sizes_that_are_not_timed_are_left_out(judged: Judged) -> None:
    evaluation = judged("return torch.exp(x) * (2.0 if x.shape[0] != 32 else 1.0)", timed_cases=1)
    assert (evaluation.status, len(evaluation.cases)) == (Status.CORRECT, 1), evaluation
    assert evaluation.findings == ()


@pytest.mark.parametrize(
    ("dtype", "off", "right"),
    [
        (torch.float32, 2e-5, False),
        (torch.float64, 2e-5, False),
        (torch.float64, 5e-6, True),
        (torch.float16, 4e-3, True),
        (torch.float16, 9e-3, False),
    ],
)
def test_the_tolerance_is_that_of_an_outputs_dtype(dtype: torch.dtype, off: float, right: bool):
    tolerance = RULES["kernelbench-x"].tolerance(Precision.FP32)
    expected = torch.full((64,), 0.25, dtype=dtype)
    actual = expected + off
    found = compare([actual], [expected], None, [], Precision.FP32, tolerance=tolerance)
    assert found.ok is right
