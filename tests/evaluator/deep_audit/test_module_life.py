"""What programs do with a module, tried on candidates that hold and on ones that break."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from evaluator.audit_record import Life, LifeTrial
from evaluator.evaluation import Status
from evaluator.executor.local import LocalExecutor
from tests.evaluator.made_requests import evaluation_request
from tests.task import as_candidate, task

REFERENCE = task(
    "return self.norm(self.linear(x))",
    init="""
    self.linear = nn.Linear(96, 64)
    self.norm = nn.BatchNorm1d(64)
    """,
    x="torch.randn(128, 96)",
)
OWN = as_candidate(REFERENCE)
PLAIN = task(
    "return torch.relu(self.linear(x))",
    init="self.linear = nn.Linear(96, 64)",
    x="torch.randn(128, 96)",
)
HEAD = """
import torch
import torch.nn as nn

cache = {}

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(96, 64)
        self.packed = None
        self.result = None

    def forward(self, x):
"""
ALWAYS_IN_TRAIN = OWN.replace(
    "return self.norm(self.linear(x))", "self.norm.train(); return self.norm(self.linear(x))"
)
BUFFER_REUSED = """
        y = torch.relu(self.linear(x))
        if self.result is None:
            self.result = torch.empty_like(y)
        return self.result.copy_(y)
"""
ADDRESS_KEPT = """
        if self.packed is None:
            self.packed = self.linear.weight.data_ptr()
        if self.packed != self.linear.weight.data_ptr():
            return torch.zeros(x.shape[0], 64, dtype=x.dtype)
        return torch.relu(self.linear(x))
"""
PACKED_AT_FIRST_CALL = """
        if "weight" not in cache:
            cache["weight"] = self.linear.weight.t().contiguous()
        return torch.relu(x @ cache["weight"] + self.linear.bias)
"""
DERIVED = """
        if self.packed is None:
            self.packed = self.linear.weight.t().contiguous()
        return torch.relu(x @ self.packed + self.linear.bias)
"""
FOLDED = as_candidate(
    task(
        "return torch.relu(F.linear(x, self.first.weight, self.first.bias) / 2.0)",
        init="""
        self.first = nn.Linear(96, 64)
        self.first.weight.data.mul_(2.0)
        self.first.bias.data.mul_(2.0)
        """,
        x="",
    )
)
RAISES_IN_EVAL = """
        if not self.training:
            raise RuntimeError("for training alone")
        return torch.relu(self.linear(x))
"""


@pytest.fixture(scope="module")
def lived() -> Callable[[str, str], dict[Life, LifeTrial]]:
    def tried(source: str, reference: str) -> dict[Life, LifeTrial]:
        request = evaluation_request(source, reference, timing_seconds=0.2, audit="always")
        evaluation = executor.evaluate(request)
        assert evaluation.status is Status.CORRECT, evaluation.message
        assert evaluation.audit is not None
        return {trial.life: trial for trial in evaluation.audit.life}

    with LocalExecutor("cpu") as executor:
        yield tried


@pytest.mark.thorough
def test_the_module_itself_holds(lived: Callable[..., dict[Life, LifeTrial]]) -> None:
    found = lived(OWN, REFERENCE)
    assert {trial.outcome for trial in found.values()} == {"holds"}, found
    assert set(found) == set(Life)


BROKEN: dict[str, tuple[str, dict[Life, str]]] = {
    "buffer": (HEAD + BUFFER_REUSED, {Life.RESULT_KEPT: "the next call overwrites its result"}),
    "address": (HEAD + ADDRESS_KEPT, {Life.MOVED: "it is wrong after to() to another place"}),
    "cache": (
        HEAD + PACKED_AT_FIRST_CALL,
        {Life.INSTANCES: "a second instance, with other weights, is wrong"},
    ),
    "train": (ALWAYS_IN_TRAIN, {Life.MODE: "it is wrong in eval()"}),
    "raises": (HEAD + RAISES_IN_EVAL, {Life.MODE: "RuntimeError: for training alone"}),
    "packed": (HEAD + DERIVED, {}),
    "folded": (FOLDED, {Life.STATE_DICT: "judged as constructed"}),
}
SLOW = ("train", "packed", "folded")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in BROKEN]
)
def test_what_breaks_is_named(lived: Callable[..., dict[Life, LifeTrial]], name: str) -> None:
    source, broken = BROKEN[name]
    found = lived(source, REFERENCE if name == "train" else PLAIN)
    outcomes = {life: trial for life, trial in found.items() if trial.outcome != "holds"}
    assert outcomes.keys() == broken.keys(), found
    assert all(broken[life] in trial.note for life, trial in outcomes.items()), outcomes
