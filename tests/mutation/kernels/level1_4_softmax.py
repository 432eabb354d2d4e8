"""One pass for maximum and sum together, then one that writes."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor softened(torch::Tensor x) {
  const int64_t rows = x.size(0), columns = x.size(1);
  torch::Tensor y = torch::empty_like(x);
  const float* xs = x.data_ptr<float>();
  float* ys = y.data_ptr<float>();
  #pragma omp parallel for schedule(dynamic, 16)
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = xs + r * columns;
    float* out = ys + r * columns;
    float top = -INFINITY;
    float sum = 0.0f;
    for (int64_t i = 0; i < columns; ++i) {
      const float v = in[i];
      if (v > top) {
        sum = sum * expf(top - v) + 1.0f;
        top = v;
      } else {
        sum += expf(v - top);
      }
    }
    for (int64_t i = 0; i < columns; ++i) out[i] = expf(in[i] - top) / sum;
  }
  return y;
}
"""

kernels = load_inline(
    name="softened",
    cpp_sources=SOURCE,
    functions=["softened"],
    extra_cflags=["-O3", "-march=native", "-fopenmp"],
    extra_ldflags=["-fopenmp"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return kernels.softened(x)
