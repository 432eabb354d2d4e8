"""A wrong output is explained by how the reference would have to run for it to be right."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from evaluator.judge.explaining import counterfactual
from evaluator.judge.explaining.counterfactual import Counterfactual, find_counterfactual
from evaluator.judge.explaining.reference_modes import to_tf32
from evaluator.judge.problem.reference import Reference
from evaluator.judge.problem.variation import Kind, fresh_seed
from evaluator.settings import Precision
from tests.task import task

CPU = torch.device("cpu")
SOURCE = task(
    "{body}",
    init="""
    self.linear = nn.Linear(48, 48)
    self.first = nn.BatchNorm1d(48)
    self.second = nn.BatchNorm1d(48)
    """,
    x="torch.randn(48, 48)",
    y="torch.rand(48, 48) + 0.5",
)
CHAIN = "return self.second(torch.relu(self.linear(self.first(x)))) * y"
SOFTMAX = "return torch.softmax(self.linear(x), 1) * y"
DIVERGENCE = "return F.kl_div(F.log_softmax(y, 1), torch.softmax(x, 1), reduction='batchmean')"


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine must not end a search here."""
    monkeypatch.setattr(counterfactual, "_SECONDS", 60.0)


def looked_for(reference: Reference, values: list[Any], wrong: Tensor) -> Counterfactual | None:
    with torch.no_grad():
        return find_counterfactual(reference, values, wrong, 0)


def made(body: str, precision: Precision = Precision.FP32) -> tuple[Reference, list[Any]]:
    """A reference with random weights, and inputs."""
    reference = Reference(SOURCE.format(body=body), CPU, precision)
    reference.randomise(7)
    return reference, reference.fresh_inputs(fresh_seed())


def in_eval_mode(reference: Reference, values: list[Any]) -> Tensor:
    return copy.deepcopy(reference.model).eval()(*values)


def one_norm_in_eval_mode(reference: Reference, values: list[Any]) -> Tensor:
    model = copy.deepcopy(reference.model)
    model.second.eval()
    return model(*values)


def under_autocast(reference: Reference, values: list[Any]) -> Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        return copy.deepcopy(reference.model)(*values).float()


def whole_in_fp16(reference: Reference, values: list[Any]) -> Tensor:
    model = copy.deepcopy(reference.model).half()
    return model(*(value.half() for value in values)).float()


def weights_in_fp16(reference: Reference, values: list[Any]) -> Tensor:
    return copy.deepcopy(reference.model).half().float()(*values)


def log2_off(reference: Reference, values: list[Any]) -> Tensor:
    t, p = (torch.softmax(value, 1) for value in values)
    return (t * (torch.log(t) * (1 + 2**-22) - torch.log(p))).sum() / len(t)


@pytest.mark.parametrize(
    ("body", "wrong", "code", "words"),
    [
        (CHAIN, in_eval_mode, "eval_mode", "all of it is in eval()"),
        (CHAIN, one_norm_in_eval_mode, "eval_mode", "`second` uses its running statistics"),
        (CHAIN, under_autocast, "precision", "bf16"),
        (SOFTMAX, whole_in_fp16, "precision", "fp16"),
        (CHAIN, weights_in_fp16, "precision", "fp16"),
        (DIVERGENCE, log2_off, "precision", "fast maths has them explains"),
    ],
)
def test_the_mistake_is_named(
    body: str, wrong: Callable[[Reference, list[Any]], Tensor], code: str, words: str
) -> None:
    reference, values = made(body)
    before = copy.deepcopy(reference.model.state_dict())
    with torch.no_grad():
        output = wrong(reference, values)
    found = looked_for(reference, values, output)
    assert found is not None and found.code == code, found
    assert words in found.words
    after = reference.model.state_dict()
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())
    assert reference.model.training


def test_bf16_tasks_are_explained_as_well():
    reference, values = made(CHAIN, Precision.BF16)
    with torch.no_grad():
        wrong = in_eval_mode(reference, values)
    found = looked_for(reference, values, wrong)
    assert found is not None and found.code == "eval_mode"


def test_without_functions_fast_maths_explains_nothing():
    reference, values = made(CHAIN)
    right = reference.expected(values)[0]
    # As Winograd's algorithm: a few elements that nearly cancel out.
    off = right * (1 + 2e-8 * torch.randn_like(right))
    off[0, 0] *= 1 + 2e-6
    assert looked_for(reference, values, off) is None


def test_nothing_is_made_up():
    reference, values = made(CHAIN)
    right = reference.expected(values)[0]
    for other in (
        torch.randn_like(right),
        right / values[1],
        right.roll(1),
        right.masked_fill(torch.arange(48) > 45, 0.0),
        right * 1.01,
        torch.full_like(right, torch.nan),
        torch.zeros_like(right),
    ):
        assert looked_for(reference, values, other) is None


def test_a_constant_factor_is_no_lower_precision():
    """Rounded all in one direction, positive numbers are off by nearly the same factor."""
    reference, _ = made("return x.abs() @ y")
    values = reference.varied_inputs(fresh_seed(Kind.BIASED))
    right = reference.expected(values)[0]
    for power in range(6, 13):
        assert looked_for(reference, values, right * (1 + 2.0**-power)) is None


def test_a_mode_that_a_module_refuses_is_passed_over():
    reference, values = made("assert self.training\n        return self.linear(x) * y")
    right = reference.expected(values)[0]
    assert looked_for(reference, values, right.roll(1)) is None
    with torch.no_grad():
        rounded = weights_in_fp16(reference, values)
    found = looked_for(reference, values, rounded)
    assert found is not None and "fp16" in found.words


def test_errors_in_few_rows_are_none_of_rounding():
    reference, values = made("return x @ y")
    right = reference.expected(values)[0]
    errors = torch.zeros_like(right)
    errors[:3] = torch.randn(3, right.shape[1])
    for power in range(6, 13):
        assert looked_for(reference, values, right + 2.0**-power * errors) is None


def test_tf32_keeps_ten_bits_of_mantissa() -> None:
    x = torch.randn(10000) * torch.exp(3 * torch.randn(10000))
    rounded = to_tf32(x)
    off = ((rounded - x) / x).abs()
    assert 2**-12 < float(off.max()) <= 2**-11
    assert torch.equal(to_tf32(rounded), rounded)
