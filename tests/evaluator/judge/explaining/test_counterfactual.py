"""A wrong output is explained by what the reference would have to do for it to be right."""

from __future__ import annotations

import copy
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
    self.first = nn.BatchNorm1d(48)
    self.second = nn.BatchNorm1d(48)
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


CHAIN = "return self.second(torch.relu(self.linear(self.first(x)))) * y"


def explained(wrong: Callable[[Reference, list[Any]], Tensor]) -> Counterfactual:
    """What is said of an output that `wrong` makes of the reference and the inputs."""
    reference = Reference(SOURCE.format(body=CHAIN), CPU, Precision.FP32)
    reference.set_state(reference.randomised(7))
    values = reference.fresh_inputs(fresh_seed())
    with torch.no_grad():
        found = looked_for(reference, values, wrong(reference, values))
    assert found is not None, "nothing was found"
    return found


def in_eval_mode(reference: Reference, values: list[Any]) -> Tensor:
    model = copy.deepcopy(reference.model).eval()
    return model(*values)


def one_norm_in_eval_mode(reference: Reference, values: list[Any]) -> Tensor:
    model = copy.deepcopy(reference.model)
    model.second.eval()
    return model(*values)


def in_bf16(reference: Reference, values: list[Any]) -> Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        return copy.deepcopy(reference.model)(*values).float()


@pytest.mark.parametrize(
    ("wrong", "code", "words"),
    [
        (in_eval_mode, "eval_mode", "all of it is in eval()"),
        (one_norm_in_eval_mode, "eval_mode", "`second` uses its running statistics"),
        (in_bf16, "precision", "bf16"),
    ],
)
def test_the_mistake_is_named(wrong, code, words):
    found = explained(wrong)
    assert found.code == code, found
    assert words in found.words, found


def test_nothing_is_made_up():
    reference = Reference(SOURCE.format(body=CHAIN), CPU, Precision.FP32)
    values = reference.fresh_inputs(1)
    right = reference.expected(values)[0]
    for other in (
        torch.randn_like(right),
        right / values[1],
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
    name = "norm" * 2000
    source = SOURCE.format(body=CHAIN).replace("self.first", f"self.{name}")
    reference = Reference(source, CPU, Precision.FP32)
    reference.set_state(reference.randomised(7))
    values = reference.fresh_inputs(1)
    model = copy.deepcopy(reference.model)
    getattr(model, name).eval()
    with torch.no_grad():
        found = looked_for(reference, values, model(*values))
    assert found is not None
    assert (found.code, found.words[:5]) == ("eval_mode", "`norm")


# In a worker

DIES = SOURCE.format(
    body="""if not self.training:
            import ctypes
            ctypes.string_at(0)
        return self.first(x) * y"""
)
LOOPS = SOURCE.format(
    body="""while not self.training:
            pass
        return self.first(x) * y"""
)


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
    with torch.no_grad():
        wrong = in_eval_mode(context.reference, values)
    found = find_counterfactual(context, values, wrong, 0)
    assert found is not None
    assert (found.code, "in eval()" in found.words) == ("eval_mode", True)


def unexplained(context: ProblemContext) -> tuple[list[Any], Tensor]:
    """Inputs, and an output that no change leads to, so that all of them are tried."""
    values = context.reference.fresh_inputs(fresh_seed())
    right = context.reference.expected(values)[0]
    return values, right * torch.linspace(0.5, 1.9, right.numel()).reshape(right.shape)


def test_a_change_may_end_its_process(context_of):
    context = context_of(DIES)
    values, wrong = unexplained(context)
    with pytest.raises(Refusal) as died:
        search(context, values, wrong, 0)
    assert died.value.reason == "segfault"
    assert find_counterfactual(context, values, wrong, 0) is None


def test_a_change_that_never_ends_is_cut_off(context_of, monkeypatch):
    monkeypatch.setattr(counterfactual, "_CUT_OFF_S", 4.0)
    context = context_of(LOOPS)
    values, wrong = unexplained(context)
    with pytest.raises(Refusal) as cut_off:
        search(context, values, wrong, 0)
    assert cut_off.value.reason == "call_timeout"


def test_no_worker_costs_no_verdict(context_of, monkeypatch):
    context = context_of(DIES)
    values, wrong = unexplained(context)

    def gone():
        raise InfrastructureError("the worker's zygote is gone")

    monkeypatch.setattr(context, "new_side", gone)
    assert find_counterfactual(context, values, wrong, 0) is None


@pytest.mark.parametrize("value", [0.0, float("nan")])
def test_of_one_value_or_none_nothing_is_asked(context_of, monkeypatch, value):
    context = context_of(DIES)
    values, wrong = unexplained(context)
    monkeypatch.setattr(counterfactual, "search", None)
    assert find_counterfactual(context, values, torch.full_like(wrong, value), 0) is None
