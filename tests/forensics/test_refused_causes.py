"""Two causes that no look at values tells: inputs that are written to, and lazy results.

Each is refused for its own reason, on a CPU and on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from evaluator.evaluation import Backend, Candidate, EvaluationRequest, Status
from evaluator.executor.local import LocalExecutor
from evaluator.settings import Settings
from tests.evaluator.judge.test_kernelbench_protocol import LAZY as BY_FUNCTION

REFERENCE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x, y):
        return {result}

def get_inputs():
    return [torch.randn(96, 160), torch.randn(96, 160)]

def get_init_inputs():
    return []
"""
SOFTMAX = "torch.softmax(x, dim=1) + y"
DISTANCE = "torch.cdist(x, y)"
GATED = "torch.sigmoid(x) * y"
BY_DISPATCH = """
class Lazy(torch.Tensor):
    @staticmethod
    def __new__(cls, work, like):
        lazy = torch.Tensor._make_wrapper_subclass(
            cls, like.shape, dtype=like.dtype, device=like.device
        )
        lazy.work = work
        return lazy

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        args = [each.work() if isinstance(each, Lazy) else each for each in args]
        return function(*args, **(kwargs or {}))
"""
BY_PARAMETER = """
class Lazy(nn.Parameter):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            for each in args:
                if isinstance(each, Lazy) and hasattr(each, "work"):
                    each.data.copy_(each.__dict__.pop("work")())
            return function(*args, **(kwargs or {}))
"""
AS_LAZY = "torch.empty(0, device=x.device).as_subclass(Lazy)"
WRITES = {
    "in place": (SOFTMAX, "x.sub_(x.amax(1, keepdim=True)).exp_()\nreturn x / x.sum(1, True) + y"),
    "through a view": (
        DISTANCE,
        "out = torch.cdist(x, y)\nx.view(-1)[:160].add_(1.0)\nreturn out",
    ),
    "as its output": (GATED, "torch.mul(torch.sigmoid(x), y, out=y)\nreturn y.clone()"),
}
LAZY = {
    "by function": (
        SOFTMAX,
        f"z = {AS_LAZY}\nz.work = lambda: torch.softmax(x, dim=1) + y\nreturn z",
        BY_FUNCTION,
    ),
    "by dispatch": (GATED, "return Lazy(lambda: torch.sigmoid(x) * y, x)", BY_DISPATCH),
    "by parameter": (
        GATED,
        "z = Lazy(torch.empty_like(x), requires_grad=False)\n"
        "z.work = lambda: torch.sigmoid(x) * y\nreturn z",
        BY_PARAMETER,
    ),
}


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda:0", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def executor(device: str) -> Iterator[LocalExecutor]:
    with LocalExecutor(device) as running:
        yield running


@pytest.fixture
def reason(executor: LocalExecutor, device: str) -> Callable[..., str]:
    """Why a forward is refused."""

    def judged(result: str, body: str, head: str = "") -> str:
        reference = REFERENCE.format(result=result)
        imports, rest = reference.split("\nclass Model", 1)
        lines = body.replace("\n", "\n        ")
        source = f"{imports}{head}\nclass ModelNew{rest.replace(f'return {result}', lines)}"
        evaluation = executor.evaluate(
            EvaluationRequest(
                problem_id="test",
                reference=reference,
                candidate=Candidate(source=source, backend=Backend.CPP),
                settings=Settings(device=device, timing_seconds=0.2, audit="never"),
            )
        )
        assert evaluation.status is Status.INTEGRITY, evaluation
        return evaluation.reason

    return judged


@pytest.mark.thorough
@pytest.mark.parametrize("name", WRITES)
def test_inputs_that_are_written_to(reason, name):
    assert reason(*WRITES[name]) == "input_modified"


@pytest.mark.parametrize("name", LAZY)
def test_a_result_that_is_computed_when_it_is_looked_at(reason, name):
    assert reason(*LAZY[name]) == "tensor_subclass"
