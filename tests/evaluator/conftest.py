from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from evaluator.evaluation import Backend, Candidate, Evaluation, EvaluationRequest
from evaluator.executor.local import LocalExecutor
from evaluator.settings import Settings

SCALE_AND_BIAS = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(features))
        self.scale = nn.Parameter(torch.ones(features))

    def forward(self, x):
        return torch.relu(x * self.scale + self.bias) * 2.0

ROWS, FEATURES = 256, 512

def get_inputs():
    return [torch.randn(ROWS, FEATURES)]

def get_init_inputs():
    return [FEATURES]
"""

HONEST = SCALE_AND_BIAS.split("ROWS,")[0].replace("class Model(", "class ModelNew(")

Evaluate = Callable[..., Evaluation]


@pytest.fixture(scope="session")
def executor() -> Iterator[LocalExecutor]:
    with LocalExecutor("cpu") as running:
        yield running


@pytest.fixture
def evaluate(executor: LocalExecutor) -> Evaluate:
    """Judge a candidate on the small scale-and-bias problem, or on another reference."""

    def judge(
        source: str,
        reference: str = SCALE_AND_BIAS,
        backend: Backend = Backend.CPP,
        hidden: tuple[str, ...] = (),
        **settings: object,
    ) -> Evaluation:
        chosen: dict[str, object] = {
            "timing_seconds": 0.2,
            "import_timeout_s": 10.0,
            "call_timeout_s": 5.0,
            # On a problem as small as this one, `auto` would depend on the machine's mood.
            "audit": "never",
        }
        request = EvaluationRequest(
            problem_id="test",
            reference=reference,
            hidden_references=hidden,
            candidate=Candidate(source=source, backend=backend),
            settings=Settings.model_validate(chosen | settings),
        )
        return executor.evaluate(request)

    return judge
