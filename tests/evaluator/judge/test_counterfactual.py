"""A wrong output is explained by what the reference would have to do for it to be right."""

from __future__ import annotations

import pytest
import torch

from evaluator.evaluation import Precision
from evaluator.judge.counterfactual import (
    Counterfactual,
    can_be_changed,
    find_counterfactual,
)
from evaluator.judge.reference import Reference
from evaluator.judge.variation import fresh_seed

CPU = torch.device("cpu")
SOURCE = """
import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(48, 48)
        self.scale = nn.Parameter(torch.ones(48))
        self.norm = nn.LayerNorm(48)

    def forward(self, x, y):
        {body}

def get_inputs():
    return [torch.randn(48, 48), torch.rand(48, 48) + 0.5]

def get_init_inputs():
    return []
"""


def explained(right: str, wrong: str, precision: Precision = Precision.FP32) -> Counterfactual:
    """What is said of `wrong` where `right` was asked for."""
    reference = Reference(SOURCE.format(body=right), CPU, precision)
    other = Reference(SOURCE.format(body=wrong), CPU, precision)
    state = reference.randomised(7)
    reference.set_state(state)
    other.set_state(state)
    values = reference.fresh_inputs(fresh_seed())
    found = find_counterfactual(reference, values, other.expected(values), 0, precision)
    assert found is not None, "nothing was found"
    return found


CHAIN = "return torch.relu(self.linear(x) * self.scale) * 0.125 + y"
CASES = [
    (CHAIN, "return self.linear(x) * self.scale * 0.125 + y", "missing_operation", "relu"),
    (CHAIN, "return torch.relu(self.linear(x) * self.scale) + y", "missing_operation", "mul"),
    (CHAIN, "return torch.relu(self.linear(x) * self.scale) * 0.125", "unfinished", "add"),
    (CHAIN, CHAIN.replace("* self.scale", ""), "missing_operation", "mul"),
    (
        CHAIN,
        "return torch.relu(F.linear(x, self.linear.weight) * self.scale) * 0.125 + y",
        "missing_parameter",
        "linear.bias",
    ),
    ("return F.softmax(x, -1) * y", "return F.softmax(x, 0) * y", "wrong_axis", "axis 0"),
    ("return x.cumsum(1) + y", "return x.cumsum(0) + y", "wrong_axis", "axis 0"),
    ("return x.sum(0) * 2", "return x.sum(1) * 2", "wrong_axis", "axis 1"),
    ("return x - y * 3", "return y * 3 - x", "swapped_operands", "sub"),
    ("return (x @ y).tanh()", "return (y @ x).tanh()", "swapped_operands", "mm"),
    ("return F.gelu(x) + y", 'return F.gelu(x, approximate="tanh") + y', "other_function", "tanh"),
    ("return F.silu(x) + y", "return torch.relu(x) + y", "other_function", "relu"),
    ("return x * 0.5 + y", "return x * 0.25 + y", "wrong_constant", "0.25"),
    (
        "return x / (x.var(1, keepdim=True, unbiased=False) + 1e-5).sqrt()",
        "return x / (x.var(1, keepdim=True) + 1e-5).sqrt()",
        "wrong_constant",
        "correction = 1",
    ),
    ("return x / (y * 1e-6 + 1e-5)", "return x / (y * 1e-6 + 1e-6)", "wrong_constant", "1e-06"),
    ("return self.norm(x) * y", "return F.layer_norm(x, (48,)) * y", "missing_parameter", "norm"),
]


@pytest.mark.parametrize(("right", "wrong", "code", "words"), CASES)
def test_the_mistake_is_named(right, wrong, code, words):
    found = explained(right, wrong)
    assert found.code == code, found
    assert words in found.words, found


def test_half_precision_too():
    found = explained(CHAIN, CHAIN.replace("torch.relu", ""), Precision.BF16)
    assert (found.code, "relu" in found.words) == ("missing_operation", True)


def test_nothing_is_made_up():
    reference = Reference(SOURCE.format(body=CHAIN), CPU, Precision.FP32)
    values = reference.fresh_inputs(1)
    right = reference.expected(values)[0]
    for other in (
        torch.randn_like(right),
        right.roll(1),
        right.masked_fill(torch.arange(48) > 45, 0.0),
        right.masked_fill(torch.arange(48) == 3, float("nan")),
        right * 1.01,
    ):
        assert find_counterfactual(reference, values, [other], 0, Precision.FP32) is None


@pytest.mark.parametrize("last", ["index_select", "nll_loss_forward", "embedding over 1", "gather"])
def test_no_index_is_put_out_of_range_on_a_gpu(last):
    """An assertion on the device would end the judge, and not the candidate."""
    assert not can_be_changed(torch.device("cuda:0"), ["mul by 2", last])
    assert can_be_changed(CPU, ["mul by 2", last])
    assert can_be_changed(torch.device("cuda:0"), ["mul by 2", "sum over 1"])


def test_no_memory_for_words_costs_no_verdict(monkeypatch):
    reference = Reference(SOURCE.format(body=CHAIN), CPU, Precision.FP32)
    values = reference.fresh_inputs(1)
    wrong = reference.expected(values)[0] + 1.0

    def full(*arguments):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(reference.model, "forward", full)
    assert find_counterfactual(reference, values, [wrong], 0, Precision.FP32) is None
