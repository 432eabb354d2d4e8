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


def test_the_test_decides_and_the_sweep_is_timed(judged: Judged) -> None:
    evaluation = judged(RIGHT)
    assert (evaluation.status, evaluation.findings) == (Status.CORRECT, ()), evaluation
    assert [case.name for case in evaluation.cases] == ["rows=64", "rows=32"]
    assert evaluation.timing is not None and len(set(evaluation.seeds)) == 1
    wrong = judged("return torch.exp(x) * 2.0 + (x.shape[0] == 7) * 1e-3")
    assert (wrong.reason, wrong.case) == ("wrong_values", "the test's sizes")
    untimed = judged("return torch.exp(x) * (2.0 if x.shape[0] != 32 else 1.0)", timed_cases=1)
    assert (len(untimed.cases), untimed.findings) == (1, ()), untimed


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
    assert finding in {found.partition(":")[0] for found in evaluation.findings}
    assert evaluation.timing is not None
    raised = finding == "forward_raised"
    assert [case.name for case in evaluation.cases] == ["rows=64", "rows=32"][raised:]


def test_the_tolerance_is_that_of_an_outputs_dtype() -> None:
    tolerance = RULES["kernelbench-x"].tolerance(Precision.FP32)
    for dtype, right, wrong in (
        (torch.float32, 1e-5, 2e-5),
        (torch.float64, 5e-6, 2e-5),
        (torch.float16, 4e-3, 9e-3),
    ):
        expected = torch.full((64,), 0.25, dtype=dtype)
        for off in (right, wrong):
            outputs = [expected + off], [expected]
            found = compare(*outputs, None, [], Precision.FP32, tolerance=tolerance)
            assert found.ok is (off == right), (dtype, off)
