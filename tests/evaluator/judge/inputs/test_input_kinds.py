"""Kinds of inputs in the judge: what they show, and what must not be shown by them."""

from __future__ import annotations

import pytest
import torch

from evaluator.evaluation import Status
from evaluator.judge.context.judge_memory import JudgeMemory
from evaluator.judge.context.problem_facts import examine
from evaluator.judge.inputs.draws import Draws
from evaluator.judge.inputs.input_kinds import InputKinds
from evaluator.judge.problem.reference import Reference
from evaluator.judge.problem.variation import Kind
from evaluator.protocol import RULES
from evaluator.settings import Precision
from tests.task import task

RELU = task("return torch.relu(x)", x="torch.rand(128, 512)")
SOFTMAX = RELU.replace("torch.relu(x)", "torch.softmax(x, 1)")
MEAN = RELU.replace("torch.relu(x)", "x.abs().mean()").replace("torch.rand(", "torch.randn(")
LOGARITHM = RELU.replace("torch.relu(x)", "torch.log(x + 0.5)")
CHOLESKY = RELU.replace(
    "torch.relu(x)", "torch.linalg.cholesky(x @ x.T + 100 * x.min() * I)"
).replace("import torch\n", "import torch\n\nI = torch.eye(128)\n")
DROPOUT = RELU.replace("torch.relu(x)", "torch.dropout(x, 0.5, True) + torch.rand_like(x)")


def candidate(body: str) -> str:
    return (
        "import torch\n\nI = torch.eye(128)\n\nclass ModelNew(torch.nn.Module):\n"
        f"    def forward(self, x):\n        {body}\n"
    )


def test_the_identity_is_no_relu_of_uniform_numbers(evaluate):
    evaluation = evaluate(candidate("return x.clone()"), RELU)
    assert evaluation.reason == "wrong_values"
    # By the recipe alone nothing shows.
    recipe = evaluate(candidate("return x.clone()"), RELU, inputs="recipe")
    assert recipe.status is Status.CORRECT
    assert recipe.correctness.input_kinds == ("plain",)


@pytest.mark.thorough
def test_a_softmax_must_take_off_its_maximum(evaluate):
    naive = candidate("e = torch.exp(x)\n        return e / e.sum(1, keepdim=True)")
    assert evaluate(naive, SOFTMAX).reason == "wrong_values"
    honest = evaluate(candidate("return torch.softmax(x, 1)"), SOFTMAX)
    assert honest.status is Status.CORRECT, honest.message
    assert {"larger", "signed"} <= set(honest.correctness.input_kinds)


@pytest.mark.thorough
def test_a_mean_does_not_hide_a_lower_precision(evaluate):
    for body in ("x.half().float()", "x.bfloat16().float()"):
        rounded = candidate(f"return ({body}).abs().mean()")
        assert evaluate(rounded, MEAN).reason == "wrong_values"
    # By the recipe alone its errors cancel.
    halves = candidate("return (x.half().float()).abs().mean()")
    assert evaluate(halves, MEAN, inputs="recipe").status is Status.CORRECT
    honest = evaluate(candidate("return x.abs().sum(1).sum() / x.numel()"), MEAN)
    assert honest.status is Status.CORRECT, honest.message


def test_kinds_that_the_reference_does_not_take_are_not_used(evaluate):
    """A logarithm of negative numbers is NaN, and Cholesky's decomposition raises."""
    logarithm = evaluate(candidate("return torch.log(x + 0.5)"), LOGARITHM)
    assert logarithm.status is Status.CORRECT, logarithm.message
    assert "signed" not in logarithm.correctness.input_kinds
    body = "return torch.linalg.cholesky(x @ x.T + 100 * x.min() * I)"
    decomposition = evaluate(candidate(body), CHOLESKY)
    assert decomposition.status is Status.CORRECT, decomposition.message


@pytest.mark.thorough
def test_the_verified_protocol_uses_four_scales_and_its_tolerance(evaluate):
    evaluation = evaluate(candidate("return torch.relu(x) * 1.0005"), RELU, protocol="verified")
    assert evaluation.status is Status.CORRECT, evaluation.message
    kinds = {"plain", "tripled", "hundredth", "negated"}
    assert set(evaluation.correctness.input_kinds) == kinds
    identity = evaluate(candidate("return x.clone()"), RELU, protocol="verified")
    assert identity.reason == "wrong_values"
    off = evaluate(candidate("return torch.relu(x) * 1.01"), RELU, protocol="verified")
    assert off.reason == "wrong_values"


@pytest.mark.parametrize(
    ("protocol", "scale"), [("refinery", 1.0), ("kernelbench", 2.0), ("verified", 4.0)]
)
def test_a_protocols_reference_uses_tf32_where_its_candidates_do(protocol, scale):
    """KernelBench leaves PyTorch's default to both, which is TF32 for convolutions alone."""
    flags = "1 + torch.backends.cudnn.allow_tf32 + 2 * torch.backends.cuda.matmul.allow_tf32"
    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    # As a judge's process sets them.
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    try:
        reference = Reference(
            RELU.replace("torch.relu(x)", f"x * ({flags})"),
            torch.device("cpu"),
            Precision.FP32,
            RULES[protocol],
        )
        x = torch.ones(2)
        assert torch.equal(reference.expected([x])[0], scale * x)
        assert not torch.backends.cudnn.allow_tf32
        assert not torch.backends.cuda.matmul.allow_tf32
    finally:
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before


@pytest.mark.thorough
def test_random_operators_are_judged_under_equal_seeds(evaluate):
    """Under every protocol; one that draws other numbers is wrong."""
    same = candidate("return torch.dropout(x, 0.5, True) + torch.rand_like(x)")
    for protocol in ("refinery", "kernelbench"):
        evaluation = evaluate(same, DROPOUT, protocol=protocol)
        assert evaluation.status is Status.CORRECT, evaluation.message
        assert evaluation.correctness.reference == "task_precision"
        for body in (
            "return torch.dropout(x, 0.4, True) + torch.rand_like(x)",
            "return torch.dropout(x, 0.5, False) + torch.rand_like(x)",
            "return torch.dropout(x, 0.5, True)",
        ):
            assert evaluate(candidate(body), DROPOUT, protocol=protocol).reason == "wrong_values"


def test_dropout_of_few_numbers_is_random_however_they_fall() -> None:
    few = task("return torch.dropout(x, 0.2, True)", x="torch.randn(3)")
    device, rules = torch.device("cpu"), RULES["refinery"]
    for source, is_random in ((few, True), (few.replace("True", "False"), False)):
        for _ in range(20):
            reference = Reference(source, device, Precision.FP32)
            facts, _values = examine(reference, rules, JudgeMemory(device))
            assert facts.is_random is is_random


def test_a_draw_that_the_reference_does_not_take_is_never_handed_out():
    """One of ten larger draws, so that trying a few when the problem is set up shows nothing."""
    source = RELU.replace("torch.relu(x)", "torch.log(100 - x[0, 0]) * x")
    reference = Reference(source, torch.device("cpu"), Precision.FP32)
    kinds = InputKinds([Kind.PLAIN, Kind.LARGER])
    draws = Draws(
        reference,
        2**20,
        kinds,
        reproducible=True,
        is_random=False,
    )
    try:
        seen = [draws.next() for _ in range(400)]
    finally:
        draws.arena.close()
    assert all(draws.values_of(draw)[0][0, 0] < 100 for draw in seen)
    assert kinds.all == (Kind.PLAIN,)
