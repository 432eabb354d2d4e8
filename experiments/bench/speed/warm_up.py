"""What is done before anything is measured: processes, headers, problems."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from evaluator.evaluation import Backend, Candidate, EvaluationRequest, Status
from evaluator.executor.executor import Executor
from evaluator.executor.local import LocalExecutor
from evaluator.settings import Settings
from experiments.bench.speed.catalogue import BenchCandidate
from problems.errors import UsageError
from tools.execute import own_module

_REFERENCE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return x + 1.0

def get_inputs():
    return [torch.randn(4096)]

def get_init_inputs():
    return []
"""

_CPP = """
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

extension = load_inline(
    name="warm_up_{number}",
    cpp_sources="torch::Tensor one_more(torch::Tensor x) {{ return x + 1.0; }}",
    functions=["one_more"],
)

class ModelNew(nn.Module):
    def forward(self, x):
        return extension.one_more(x)
"""

_CUDA = '''
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

extension = load_inline(
    name="warm_up_{number}",
    cpp_sources="torch::Tensor one_more(torch::Tensor x);",
    cuda_sources="""
        __global__ void kernel(const float* x, float* y, int n) {{
          const int i = blockIdx.x * blockDim.x + threadIdx.x;
          if (i < n) y[i] = x[i] + 1.0f;
        }}
        torch::Tensor one_more(torch::Tensor x) {{
          auto y = torch::empty_like(x);
          kernel<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(),
                                                   x.numel());
          return y;
        }}
    """,
    functions=["one_more"],
)

class ModelNew(nn.Module):
    def forward(self, x):
        return extension.one_more(x)
'''


def warm_up(executor: LocalExecutor, settings: Settings) -> float:
    """Judge trivial kernels until all processes of the executor run; returns the seconds it took.

    Raises `UsageError` where not even these are correct: nothing could be measured here.
    """
    begin = time.monotonic()
    kernel = _CPP if settings.device == "cpu" else _CUDA
    # Each process starts when it is first asked.
    with ThreadPoolExecutor(executor.width) as pool:
        sources = (kernel.format(number=number) for number in range(executor.width))
        list(pool.map(lambda source: _judge_trivial(executor, settings, source), sources))
    return time.monotonic() - begin


def start(executor: Executor, settings: Settings) -> None:
    """Judge a trivial kernel that compiles nothing, so that the processes for such candidates run.

    Raises `UsageError` where not even this is correct.
    """
    _judge_trivial(executor, settings, own_module(_REFERENCE))


def _judge_trivial(executor: Executor, settings: Settings, source: str) -> None:
    backend = Backend.CPP if settings.device == "cpu" else Backend.CUDA
    evaluation = executor.evaluate(
        EvaluationRequest(
            problem_id="warm_up",
            reference=_REFERENCE,
            candidate=Candidate(source=source, backend=backend),
            settings=settings.model_copy(update={"timing_seconds": 0.1}),
        )
    )
    if evaluation.status is not Status.CORRECT:
        raise UsageError(
            f"a trivial kernel is {evaluation.status} on {settings.device}: {evaluation.message}"
            f" {evaluation.detail[-500:]}; `python -m agent.doctor` says what is missing here"
        )


def set_up(executor: Executor, candidate: BenchCandidate, settings: Settings) -> float:
    """Judge PyTorch's own module on a candidate's problem; gives the seconds that it took."""
    begin = time.monotonic()
    own = Candidate(
        source=own_module(candidate.reference),
        backend=Backend.CPP,
    )
    short = settings.model_copy(update={"timing_seconds": 0.1})
    request = candidate.request(short).model_copy(update={"candidate": own})
    evaluation = executor.evaluate(request)
    if evaluation.status is not Status.CORRECT:
        raise UsageError(
            f"{candidate.problem.id} can't be judged here: PyTorch's own module is"
            f" {evaluation.status}, {evaluation.message}"
        )
    return time.monotonic() - begin
