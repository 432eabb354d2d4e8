"""Registers an operator with TORCH_LIBRARY and a fake.

problem: level1_1_swish
pace: slow
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <torch/library.h>
#include <cmath>

at::Tensor swish_cpu(const at::Tensor& x) {
  auto input = x.contiguous();
  auto y = at::empty_like(input);
  const float* in = input.data_ptr<float>();
  float* out = y.data_ptr<float>();
  at::parallel_for(0, input.numel(), 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) out[i] = in[i] / (1.0f + std::exp(-in[i]));
  });
  return y;
}

TORCH_LIBRARY(honest, m) { m.def("swish(Tensor x) -> Tensor"); }
TORCH_LIBRARY_IMPL(honest, CPU, m) { m.impl("swish", &swish_cpu); }
"""

path = load_inline(
    name="swish_registered",
    cpp_sources=source,
    extra_cflags=["-O3", "-march=native"],
    is_python_module=False,
)
assert path in torch.ops.loaded_libraries


@torch.library.register_fake("honest::swish")
def _(x):
    return torch.empty_like(x)


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.ops.honest.swish(x)
