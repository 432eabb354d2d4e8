"""Kahan's compensated sum in another order.

problem: level1_7_rms_norm
pace: slow
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor rms_norm(torch::Tensor x, torch::Tensor weight, double eps) {
  const int64_t rows = x.size(0), dim = x.size(1);
  auto y = torch::empty_like(x);
  const float *in = x.data_ptr<float>(), *w = weight.data_ptr<float>();
  float* out = y.data_ptr<float>();
  #pragma omp parallel for
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = in + r * dim;
    float sum = 0.0f, lost = 0.0f;
    for (int64_t c = dim - 1; c >= 0; --c) {
      const float term = row[c] * row[c] - lost, next = sum + term;
      lost = (next - sum) - term;
      sum = next;
    }
    const float scale = 1.0f / std::sqrt(sum / dim + static_cast<float>(eps));
    for (int64_t c = 0; c < dim; ++c) out[r * dim + c] = row[c] * scale * w[c];
  }
  return y;
}
"""

extension = load_inline(
    "rms_norm_kahan", source, functions=["rms_norm"], extra_cflags=["-O3", "-fopenmp"]
)


class ModelNew(nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return extension.rms_norm(x, self.weight, self.eps)
