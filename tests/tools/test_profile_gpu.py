"""Profiles of real kernels on a GPU: which tier held, and whether the label is the planted one."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from evaluator.collect.ncu import REPORT, find_ncu
from evaluator.errors import ProfilerError
from evaluator.evaluation import Backend, Status
from evaluator.executor.local import LocalExecutor
from evaluator.ipc.service import Service
from problems.cache_folder import cache_folder
from tests.evaluator.made_requests import evaluation_request
from tests.task import task
from tools.profile import profile
from tools.profile_server import ProfileRequest
from tools.profiling.profile_report import Bottleneck, Profile, ProfilerTier

pytestmark = pytest.mark.gpu

REFERENCE = task(
    "return torch.relu(x + self.bias) * 2",
    init="self.bias = torch.nn.Parameter(torch.zeros(features))",
    sizes={"features": "8192"},
    x="torch.randn(16384, 8192)",
)
MODULE = '''# plan: {plan}
import torch
from torch.utils.cpp_extension import load_inline

cuda = r"""
{cuda}
torch::Tensor run(torch::Tensor x, torch::Tensor bias) {{
  auto y = torch::empty_like(x);
  const int64_t n = x.numel(), columns = x.size(1);
  {launch}
  return y;
}}
"""
ext = load_inline(
    name="{name}",
    cpp_sources=["torch::Tensor run(torch::Tensor x, torch::Tensor bias);"],
    cuda_sources=[cuda],
    functions=["run"],
)


class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.zeros(features))

    def forward(self, x):
        {forward}
'''
VECTOR = """
__global__ void vector_k(const float4* __restrict__ x, const float4* __restrict__ b,
                         float4* __restrict__ y, int64_t n, int64_t columns) {
  int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 v = x[i], w = b[i % columns];
  y[i] = make_float4(fmaxf(v.x + w.x, 0.f) * 2, fmaxf(v.y + w.y, 0.f) * 2,
                     fmaxf(v.z + w.z, 0.f) * 2, fmaxf(v.w + w.w, 0.f) * 2);
}
"""
VECTOR_LAUNCH = (
    "vector_k<<<(n / 4 + 255) / 256, 256>>>((const float4*)x.data_ptr<float>(),"
    " (const float4*)bias.data_ptr<float>(), (float4*)y.data_ptr<float>(), n / 4, columns / 4);"
)
NARROW = """
__global__ void narrow_k(const float* x, const float* b, float* y, int64_t n, int64_t columns) {
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n;
       i += (int64_t)gridDim.x * blockDim.x)
    y[i] = fmaxf(x[i] + b[i % columns], 0.f) * 2;
}
"""
NARROW_LAUNCH = (
    "narrow_k<<<16, 128>>>(x.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(), n,"
    " columns);"
)
RUN = "return ext.run(x, self.bias)"


def candidate(name: str, cuda: str, launch: str, forward: str = RUN) -> str:
    return MODULE.format(plan=name, name=name, cuda=cuda, launch=launch, forward=forward)


@pytest.fixture(scope="module")
def executor() -> Iterator[LocalExecutor]:
    with LocalExecutor("cuda:0") as executor:
        yield executor


def judged(executor: LocalExecutor, source: str) -> ProfileRequest:
    request = evaluation_request(
        source, REFERENCE, backend=Backend.CUDA, device="cuda:0", timing_seconds=2.0
    )
    evaluation = executor.evaluate(request)
    assert evaluation.status is Status.CORRECT, (evaluation.message, evaluation.build)
    return ProfileRequest(request=request, evaluation=evaluation)


def profiled(executor: LocalExecutor, source: str, keep: Path | None = None) -> Profile:
    asked = judged(executor, source)
    result = profile(asked.request, asked.evaluation, keep=keep)
    print(result.summary)
    print(f"{result.seconds:.1f} s, missing: {result.missing}, walls: {result.isolation}")
    return result


def libraries() -> set[str]:
    """Names of what is built in the cache."""
    return {entry.name for entry in (cache_folder() / "libraries").iterdir()}


def best_tier() -> ProfilerTier:
    return ProfilerTier.NCU if find_ncu() is not None else ProfilerTier.TORCH_TRACE


def test_vectorised_kernel_is_near_the_memory_bound(
    executor: LocalExecutor, tmp_path: Path
) -> None:
    result = profiled(executor, candidate("gpu_vector", VECTOR, VECTOR_LAUNCH), tmp_path / "kept")
    assert result.rung is best_tier(), result.rung_reason
    assert result.bottleneck in (Bottleneck.MEMORY_BANDWIDTH, Bottleneck.AT_THE_BOUND)
    assert [kernel.name for kernel in result.kernels if kernel.own] == ["vector_k"]
    assert result.kernels[0].launches == 1
    if result.rung is ProfilerTier.NCU:
        assert (tmp_path / "kept" / REPORT).stat().st_size > 0
        moved = sum(
            result.kernels[0].metrics[name] or 0.0
            for name in ("dram_read_bytes", "dram_write_bytes")
        )
        assert moved == pytest.approx(2 * 4 * 16384 * 8192, rel=0.15)
        assert len(result.missing) <= 4, result.missing
        # Counters or not, a candidate is never root.
        assert "own_uid" in result.isolation or os.geteuid() != 0


def test_sixteen_blocks_are_too_few(executor: LocalExecutor) -> None:
    result = profiled(executor, candidate("gpu_narrow", NARROW, NARROW_LAUNCH))
    assert result.bottleneck is Bottleneck.TOO_FEW_BLOCKS
    assert "16 blocks" in result.headline
    if result.rung is ProfilerTier.NCU:
        # The loop's one statement holds every load; the line is that of the candidate's own file.
        line = next(line for line in result.summary.splitlines() if "of the stalls" in line)
        assert "`y[i] = fmaxf(x[i] + b[i % columns], 0.f) * 2;`" in line
        source = candidate("gpu_narrow", NARROW, NARROW_LAUNCH).splitlines()
        number = next(n for n, text in enumerate(source, 1) if text.lstrip().startswith("y[i]"))
        assert line.startswith(f"- line {number} ")


def test_library_kernels_are_named_as_such(executor: LocalExecutor) -> None:
    forward = "return torch.relu(x + self.bias) * ext.run(x[:1, :8192], self.bias).numel() / 4096"
    result = profiled(executor, candidate("gpu_library", VECTOR, VECTOR_LAUNCH, forward))
    assert result.bottleneck is Bottleneck.LIBRARY
    assert {kernel.own for kernel in result.kernels} == {True, False}


def test_without_ncu_the_trace_holds(
    executor: LocalExecutor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*arguments: object, **options: object) -> object:
        raise ProfilerError("the performance counters are not open to this user")

    monkeypatch.setattr("evaluator.collect.ncu.collect_ncu", refuse)
    result = profiled(executor, candidate("gpu_vector", VECTOR, VECTOR_LAUNCH), tmp_path)
    assert result.rung is ProfilerTier.TORCH_TRACE
    assert (tmp_path / "trace.json").stat().st_size > 0
    assert "counters are not open" in result.rung_reason
    assert "counters are not open" in result.summary
    assert result.bottleneck in (Bottleneck.MEMORY_BANDWIDTH, Bottleneck.AT_THE_BOUND)
    assert result.kernels[0].metrics["grid"] == 16384 * 8192 / 4 / 256


def test_the_second_of_two_profiles_finds_a_process_that_waits(executor: LocalExecutor) -> None:
    if find_ncu() is None:
        pytest.skip("the spare is ncu's, which is not installed here")
    turns = [
        judged(executor, candidate("gpu_vector", VECTOR, VECTOR_LAUNCH)),
        judged(executor, candidate("gpu_narrow", NARROW, NARROW_LAUNCH)),
    ]
    built = libraries()
    found = []
    with closing(Service("tools.profile_server")) as server:
        for asked in turns:
            answer = server.ask(asked.model_dump_json(by_alias=True).encode())
            found.append(Profile.model_validate_json(answer))
            print({name: round(seconds, 2) for name, seconds in found[-1].stages.items()})
            time.sleep(10)  # as a turn's model and judge leave it
    first, second = found
    assert first.rung is second.rung is ProfilerTier.NCU, first.rung_reason
    assert libraries() == built, "the judge's library was not found"
    assert second.stages["start"] < 0.5
    assert second.bottleneck is Bottleneck.TOO_FEW_BLOCKS
    assert [kernel.name for kernel in second.kernels] == ["narrow_k"]
