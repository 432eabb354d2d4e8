"""A wrong output is explained by what the reference would have to do for it to be right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest
import torch
from torch import Tensor

from evaluator.errors import InfrastructureError
from evaluator.judge.context.problem_context import ProblemContext
from evaluator.judge.explaining import counterfactual, counterfactual_search
from evaluator.judge.explaining.counterfactual import CLOSE, find_counterfactual, search
from evaluator.judge.explaining.counterfactual_search import (
    Counterfactual,
    CounterfactualSearch,
    read,
)
from evaluator.judge.problem.reference import Reference
from evaluator.judge.problem.variation import fresh_seed
from evaluator.judge.refusal import Refusal
from evaluator.judge.workers.zygote import Zygote
from evaluator.settings import Precision
from tests.evaluator.made_requests import evaluation_request
from tests.task import task

CPU = torch.device("cpu")

SOURCE = task(
    "{body}",
    init="""
    self.linear = nn.Linear(48, 48)
    self.scale = nn.Parameter(torch.ones(48))
    self.norm = nn.LayerNorm(48)
    """,
    x="torch.randn(48, 48)",
    y="torch.rand(48, 48) + 0.5",
)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine must not end a search here."""
    monkeypatch.setattr(counterfactual_search, "SECONDS", 60.0)


def looked_for(reference: Reference, values: list[Any], wrong: Tensor) -> Counterfactual | None:
    """What a search says of `wrong`, here and now: no change of these ends its process."""
    model = reference.problem.module.Model
    search = type("Search", (CounterfactualSearch,), {"kind": model})(*reference.initial_arguments)
    search.model = reference.model
    precision = {torch.float32: Precision.FP32, torch.bfloat16: Precision.BF16}[reference.dtype]
    with torch.no_grad():
        return read(search(wrong, 0, CLOSE[precision], *values))


def explained(right: str, wrong: str, precision: Precision = Precision.FP32) -> Counterfactual:
    """What is said of `wrong` where `right` was asked for."""
    reference = Reference(SOURCE.format(body=right), CPU, precision)
    other = Reference(SOURCE.format(body=wrong), CPU, precision)
    state = reference.randomised(7)
    reference.set_state(state)
    other.set_state(state)
    values = reference.fresh_inputs(fresh_seed())
    found = looked_for(reference, values, other.expected(values)[0])
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


def test_nothing_is_made_up():
    reference = Reference(SOURCE.format(body=CHAIN), CPU, Precision.FP32)
    values = reference.fresh_inputs(1)
    right = reference.expected(values)[0]
    for other in (
        torch.randn_like(right),
        right.roll(1),
        right.masked_fill(torch.arange(48) > 45, 0.0),
        right * 1.01,
    ):
        assert looked_for(reference, values, other) is None


def test_errors_in_few_rows_are_none_of_rounding():
    reference = Reference(SOURCE.format(body="return x @ y"), CPU, Precision.FP32)
    values = reference.fresh_inputs(1)
    right = reference.expected(values)[0]
    errors = torch.zeros_like(right)
    errors[:3] = torch.randn(3, right.shape[1])
    for power in range(6, 13):
        assert looked_for(reference, values, right + 2.0**-power * errors) is None


def test_words_of_any_length_fit():
    name = "scale" * 2000
    source = SOURCE.format(body="return torch.addcmul(y, x, self.scale)").replace(
        "self.scale", f"self.{name}"
    )
    reference = Reference(source, CPU, Precision.FP32)
    reference.set_state(reference.randomised(7))
    x, y = reference.fresh_inputs(1)
    found = looked_for(reference, [x, y], y + x)
    assert found is not None
    assert (found.code, found.words[:6]) == ("missing_parameter", "`scale")


# In a worker

BATCH_NORM = SOURCE.format(body="return torch.relu(self.batch_norm(x)) * y").replace(
    "self.norm = nn.LayerNorm(48)",
    "self.batch_norm = nn.BatchNorm1d(48, track_running_stats=False)",
)
"""Asked for the statistics that it hasn't got, it reads at address 0."""
LOOP = SOURCE.format(
    body="""step = y * 0.5
        while not bool((x > 9).all()):
            x = x + step
        return x"""
)
"""With a step of 0 it goes on for ever."""


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    zygote = Zygote()
    yield zygote
    zygote.close()


@pytest.fixture
def context_of(zygote: Zygote) -> Iterator[Callable[..., ProblemContext]]:
    with ExitStack() as contexts:

        def made(source: str, precision: Precision = Precision.FP32) -> ProblemContext:
            request = evaluation_request("", source, device="cpu", precision=precision)
            context = ProblemContext(request, CPU, zygote)
            context.reference.set_state(context.reference.randomised(7))
            return contexts.enter_context(closing(context))

        yield made


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.BF16])
def test_a_worker_finds_it(context_of, precision):
    """With the secret weights, or it would be nowhere near."""
    context = context_of(SOURCE.format(body=CHAIN), precision)
    values = context.reference.fresh_inputs(fresh_seed())
    x, y = values
    with torch.no_grad():
        wrong = context.reference.model.linear(x) * context.reference.model.scale * 0.125 + y
    found = find_counterfactual(context, values, wrong, 0)
    assert found is not None
    assert (found.code, "relu" in found.words) == ("missing_operation", True)


def unexplained(context: ProblemContext) -> tuple[list[Any], Tensor]:
    """Inputs, and an output that no change leads to, so that all of them are tried."""
    values = context.reference.fresh_inputs(fresh_seed())
    right = context.reference.expected(values)[0]
    return values, right * torch.linspace(0.5, 1.9, right.numel()).reshape(right.shape)


def test_a_change_may_end_its_process(context_of):
    context = context_of(BATCH_NORM)
    values, wrong = unexplained(context)
    with pytest.raises(Refusal) as died:
        search(context, values, wrong, 0)
    assert died.value.reason == "segfault"
    assert find_counterfactual(context, values, wrong, 0) is None


def test_a_change_that_would_end_its_process_hides_no_likelier_one(context_of):
    context = context_of(BATCH_NORM)
    values = context.reference.fresh_inputs(fresh_seed())
    with torch.no_grad():
        wrong = context.reference.model.batch_norm(values[0]) * values[1]
    found = find_counterfactual(context, values, wrong, 0)
    assert found is not None
    assert (found.code, "relu" in found.words) == ("missing_operation", True)


def test_a_change_that_never_ends_is_cut_off(context_of, monkeypatch):
    monkeypatch.setattr(counterfactual, "_CUT_OFF_S", 4.0)
    context = context_of(LOOP)
    values, wrong = unexplained(context)
    with pytest.raises(Refusal) as cut_off:
        search(context, values, wrong, 0)
    assert cut_off.value.reason == "call_timeout"


def test_no_worker_costs_no_verdict(context_of, monkeypatch):
    context = context_of(BATCH_NORM)
    values, wrong = unexplained(context)

    def gone():
        raise InfrastructureError("the worker's zygote is gone")

    monkeypatch.setattr(context, "new_side", gone)
    assert find_counterfactual(context, values, wrong, 0) is None


@pytest.mark.parametrize("value", [0.0, float("nan")])
def test_of_one_value_or_none_nothing_is_asked(context_of, monkeypatch, value):
    context = context_of(BATCH_NORM)
    values, wrong = unexplained(context)
    monkeypatch.setattr(counterfactual, "search", None)
    assert find_counterfactual(context, values, torch.full_like(wrong, value), 0) is None
