"""Loaded kernels on a GPU: a CUDA and a Triton one, called, compiled and captured."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from agent.deployment.load import load
from tests.agent.proven_kernel import NORM, kernel_of, proven
from tests.agent.test_deployment import Norm, right

pytestmark = [
    pytest.mark.gpu,
    # Importing Inductor warns of PyTorch's own code in 2.11.
    pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning"),
]

IN_CUDA = '''
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void norm_k(const float* x, const float* weight, float* to, int dim) {
  const float* row = x + blockIdx.x * dim;
  float sum = 0;
  for (int i = 0; i < dim; ++i) sum += row[i] * row[i];
  const float factor = rsqrtf(sum / dim + 1e-6f);
  for (int i = threadIdx.x; i < dim; i += blockDim.x)
    to[blockIdx.x * dim + i] = row[i] * factor * weight[i];
}

torch::Tensor norm(torch::Tensor x, torch::Tensor weight) {
  auto to = torch::empty_like(x);
  norm_k<<<x.size(0), 32, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), weight.data_ptr<float>(), to.data_ptr<float>(), x.size(1));
  return to;
}
"""
built = load_inline(
    "norm_cuda",
    "torch::Tensor norm(torch::Tensor x, torch::Tensor weight);",
    SOURCE,
    functions=["norm"],
)
'''
IN_TRITON = """
import torch
import triton
import triton.language as tl


@triton.jit
def norm_k(x, weight, to, dim, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    a = tl.load(x + row * dim + i, mask=i < dim, other=0.0)
    factor = tl.rsqrt(tl.sum(a * a) / dim + 1e-6)
    tl.store(to + row * dim + i, a * factor * tl.load(weight + i, mask=i < dim), mask=i < dim)


def norm(x, weight):
    to = torch.empty_like(x)
    norm_k[(x.shape[0],)](x, weight, to, x.shape[1], BLOCK=64)
    return to
"""
KERNELS = {
    "cuda": kernel_of(NORM, "return built.norm(x, self.weight)", before=IN_CUDA),
    "triton": kernel_of(NORM, "return norm(x, self.weight)", before=IN_TRITON),
}


@pytest.mark.parametrize("language", list(KERNELS))
@torch.no_grad()
def test_a_kernel_of_a_gpu(tmp_path: Path, language: str) -> None:
    norm = load(proven(tmp_path, NORM, KERNELS[language], device="cuda:0"), Norm())
    x = torch.randn(6, 48)
    assert right(norm, x) == "original"
    norm.cuda()
    x = x.cuda()
    assert right(norm, x) == "kernel"
    torch.optim.AdamW(norm.parameters(), fused=True).step()
    norm.weight.add_(1.0)
    assert right(norm, x) == "kernel"
    assert right(norm, x[:5]) == "original"

    torch._dynamo.reset()
    for mode in (None, "reduce-overhead"):
        compiled = torch.compile(norm, fullgraph=True, mode=mode)
        for _ in range(4):
            torch.testing.assert_close(compiled(x), norm.original(x))
            norm.weight.mul_(0.5)

    graph = torch.cuda.CUDAGraph()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        norm(x)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        y = norm(x)
    x.normal_()
    graph.replay()
    torch.testing.assert_close(y, norm.original(x))
