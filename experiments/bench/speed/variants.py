"""Any number of distinct right kernels of one problem: what a search over schedules hands in.

Each differs from the others in its text (threads, elements a thread, unrolling, cache hints, index
type, how it divides), so that each must be compiled: caches go by content. In C++ some of these
choices mean nothing and stand in a comment.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from evaluator.evaluation import Backend, Candidate
from problems.loader import load_problem
from problems.problem import Problem

PROBLEM = "level2_1_bias_swish_gate_residual"

_MODULE = '''
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/extension.h>
{kernel}
"""

extension = load_inline(
    name="{name}",
    {sources}
    functions=["fused"],
)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(dim))
        self.scale = nn.Parameter(torch.randn(dim))

    def forward(self, x, gate, residual):
        return extension.fused(x, gate, residual, self.bias, self.scale)
'''

_SIGNATURE = (
    "torch::Tensor fused(torch::Tensor x, torch::Tensor gate, torch::Tensor residual,"
    " torch::Tensor bias, torch::Tensor scale)"
)

_CUDA = """
#include <ATen/cuda/CUDAContext.h>

constexpr int THREADS = {threads}, ITEMS = {items};

__global__ void __launch_bounds__(THREADS)
    fused_kernel(const float* __restrict__ x, const float* __restrict__ gate,
                 const float* __restrict__ residual, const float* __restrict__ bias,
                 const float* __restrict__ scale, float* __restrict__ out, int n, int dim) {{
  const {index} first = blockIdx.x * THREADS * ITEMS + threadIdx.x;
#pragma unroll {unroll}
  for (int k = 0; k < ITEMS; k++) {{
    const {index} i = first + k * THREADS;
    if (i >= n) return;
    const int c = i % dim;
    const float v = {load}(x + i) + bias[c];
    const float swish = {swish};
    out[i] = {load}(residual + i) + swish * tanhf({load}(gate + i)) * scale[c];
  }}
}}

{signature} {{
  TORCH_CHECK(x.is_cuda() && x.is_contiguous(), "x must be contiguous on the GPU");
  auto out = torch::empty_like(x);
  const int n = x.numel(), per_block = THREADS * ITEMS;
  fused_kernel<<<(n + per_block - 1) / per_block, THREADS, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), gate.data_ptr<float>(), residual.data_ptr<float>(),
      bias.data_ptr<float>(), scale.data_ptr<float>(), out.data_ptr<float>(), n, x.size(1));
  return out;
}}
"""

_CPP = """
#include <cmath>

{signature} {{
  TORCH_CHECK(x.is_contiguous(), "x must be contiguous");
  auto out = torch::empty_like(x);
  const int64_t rows = x.size(0), dim = x.size(1);
  const float *xp = x.data_ptr<float>(), *gp = gate.data_ptr<float>();
  const float *rp = residual.data_ptr<float>(), *bp = bias.data_ptr<float>();
  const float* sp = scale.data_ptr<float>();
  float* op = out.data_ptr<float>();
  at::parallel_for(0, rows, {threads}, [&](int64_t begin, int64_t end) {{
    for (int64_t r = begin; r < end; r++) {{
#pragma GCC unroll {unroll}
      for (int64_t c = 0; c < dim; c++) {{
        const float v = xp[r * dim + c] + bp[c];
        op[r * dim + c] =
            rp[r * dim + c] + v / (1.0f + std::exp(-v)) * std::tanh(gp[r * dim + c]) * sp[c];
      }}
    }}
  }});
  return out;
}}
// {items} {load} {index} {swish}
"""

_CHOICES = tuple(
    product(
        (64, 128, 256, 512, 1024),
        (1, 2, 4, 8, 16, 32),
        (1, 2, 4, 8, 16),
        ("__ldg", "__ldcs", "__ldcg"),
        ("int", "int64_t"),
        ("v / (1.0f + expf(-v))", "v * (1.0f / (1.0f + expf(-v)))"),
    )
)
MOST = len(_CHOICES)
"""So many variants there are."""


def problem() -> Problem:
    """What all variants answer."""
    return load_problem(PROBLEM)


def variants(backend: Backend) -> Iterator[Candidate]:
    """All `MOST` variants in C++ or CUDA, in a fixed order that mixes the choices."""
    cuda = backend is Backend.CUDA
    for place in range(MOST):
        # 97 has no divisor in common with their number, so each choice is met once.
        names = ("threads", "items", "unroll", "load", "index", "swish")
        choice = dict(zip(names, _CHOICES[place * 97 % MOST], strict=True))
        kernel = (_CUDA if cuda else _CPP).format(**choice, signature=_SIGNATURE)
        sources = (
            f'cpp_sources="{_SIGNATURE};",\n    cuda_sources=source,'
            if cuda
            else 'cpp_sources=source,\n    extra_cflags=["-O3", "-fopenmp"],'
        )
        source = _MODULE.format(kernel=kernel, name=f"variant_{place}", sources=sources)
        yield Candidate(source=source.lstrip(), backend=backend)
