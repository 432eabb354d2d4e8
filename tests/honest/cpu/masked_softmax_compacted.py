"""Skips masked columns, so its work depends on the data.

problem: level2_7_scaled_masked_softmax
pace: slow
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <cmath>
#include <vector>

torch::Tensor attend(torch::Tensor scores, torch::Tensor keep, torch::Tensor bias, double scale) {
  const int64_t batch = scores.size(0), heads = scores.size(1), length = scores.size(3);
  auto y = torch::zeros_like(scores);
  const float *in = scores.data_ptr<float>(), *offset = bias.data_ptr<float>();
  float* out = y.data_ptr<float>();
  const bool* kept = keep.data_ptr<bool>();
  for (int64_t b = 0; b < batch; ++b) {
    std::vector<int64_t> columns;
    for (int64_t c = 0; c < length; ++c)
      if (kept[b * length + c]) columns.push_back(c);
    #pragma omp parallel for
    for (int64_t r = 0; r < heads * length; ++r) {
      const float* row = in + (b * heads * length + r) * length;
      float* to = out + (b * heads * length + r) * length;
      float top = -INFINITY, sum = 0.0f;
      for (int64_t c : columns) {
        to[c] = row[c] * static_cast<float>(scale) + offset[r * length + c];
        top = std::max(top, to[c]);
      }
      for (int64_t c : columns) sum += to[c] = std::exp(to[c] - top);
      for (int64_t c : columns) to[c] /= sum;
    }
  }
  return y;
}
"""

extension = load_inline(
    "masked_softmax", source, functions=["attend"], extra_cflags=["-O2", "-fopenmp"]
)


class ModelNew(nn.Module):
    def __init__(self, heads, length, scale):
        super().__init__()
        self.scale = scale
        self.bias = nn.Parameter(torch.randn(heads, length, length))

    def forward(self, scores, keep):
        return extension.attend(scores, keep, self.bias, self.scale)
