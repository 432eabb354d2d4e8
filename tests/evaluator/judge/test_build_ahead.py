"""What is built ahead is found built by the judge, and nothing else that is seen there counts."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator.evaluation import Backend, Candidate, EvaluationRequest, Settings, Status
from evaluator.executor.local import LocalExecutor
from evaluator.service import Service
from tests.evaluator.conftest import SCALE_AND_BIAS

KERNEL = '''
import torch, torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <torch/extension.h>
torch::Tensor scaled(torch::Tensor x, torch::Tensor scale, torch::Tensor bias) {
    auto y = torch::empty_like(x);
    const float *in = x.data_ptr<float>(), *s = scale.data_ptr<float>();
    const float* b = bias.data_ptr<float>();
    float* out = y.data_ptr<float>();
    const int64_t rows = x.size(0), columns = x.size(1);
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c) {
            const float v = in[r * columns + c] * s[c] + b[c];
            out[r * columns + c] = v > 0.0f ? v * 2.0f : 0.0f;
        }
    return y;
}
"""
extension = load_inline(name="scaled", cpp_sources=SOURCE, functions=["scaled"])

class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(features))
        self.scale = nn.Parameter(torch.ones(features))

    def forward(self, x):
        return extension.scaled(x, self.scale, self.bias)
'''


def request(source: str) -> EvaluationRequest:
    return EvaluationRequest(
        problem_id="test",
        reference=SCALE_AND_BIAS,
        candidate=Candidate(source=source, backend=Backend.CPP),
        settings=Settings(timing_seconds=0.2, import_timeout_s=20.0),
    )


@pytest.fixture(scope="module")
def ahead(shared_cache: Path) -> Iterator[Service]:
    service = Service("evaluator.judge.build_ahead", "cpu", str(shared_cache))
    yield service
    service.close()


def built(ahead: Service, source: str) -> dict[str, float | bool]:
    return json.loads(ahead.ask(request(source).model_dump_json().encode()))


def test_the_judge_finds_it_built(ahead: Service, executor: LocalExecutor) -> None:
    kernel = KERNEL.replace("#include", f"// {uuid.uuid4()}\n#include")
    first = built(ahead, kernel)
    assert first["cached"] is False
    assert first["seconds"] > 0
    assert built(ahead, kernel)["cached"] is True
    evaluation = executor.evaluate(request(kernel))
    assert evaluation.status is Status.CORRECT, evaluation.message
    assert evaluation.build is not None
    assert evaluation.build.cached


@pytest.mark.parametrize(
    "source",
    [
        "class ModelNew(",
        "raise SystemExit(3)",
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
        "import os\nos.write(3, b'rubbish' * 99)\nos.closerange(3, 99)",
        KERNEL.replace("x.size(1);", "x.size(1)"),
    ],
    ids=["no Python", "leaves", "kills itself", "spoils its channel", "no C++"],
)
def test_what_fails_here_costs_nothing_and_the_next_is_built(ahead: Service, source: str) -> None:
    built(ahead, source)
    assert built(ahead, "class ModelNew: pass") == {"seconds": 0.0, "cached": True}
    assert ahead.pid is not None
