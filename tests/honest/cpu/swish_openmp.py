"""OpenMP with a dynamic schedule, -ffast-math and -march=native.

problem: level1_1_swish
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <algorithm>
#include <cmath>

torch::Tensor swish(torch::Tensor x) {
  TORCH_CHECK(x.is_contiguous(), "x must be contiguous");
  auto y = torch::empty_like(x);
  const float* in = x.data_ptr<float>();
  float* out = y.data_ptr<float>();
  const int64_t n = x.numel(), block = 4096;
  #pragma omp parallel for schedule(dynamic, 8)
  for (int64_t begin = 0; begin < n; begin += block) {
    const int64_t end = std::min(n, begin + block);
    // -ffast-math knows no infinity, so none may arise.
    for (int64_t i = begin; i < end; ++i) {
      out[i] = in[i] / (1.0f + std::exp(std::min(-in[i], 80.0f)));
    }
  }
  return y;
}
"""

extension = load_inline(
    name="swish_openmp",
    cpp_sources=source,
    functions=["swish"],
    extra_cflags=["-O3", "-march=native", "-ffast-math", "-fopenmp"],
    extra_ldflags=["-fopenmp"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.swish(x)
