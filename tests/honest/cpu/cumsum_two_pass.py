"""A blocked scan with another order of sums.

problem: level1_20_cumsum
pace: slow
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <algorithm>

torch::Tensor scan(torch::Tensor x) {
  const int64_t rows = x.size(0), cols = x.size(1), block = 64;
  auto y = torch::empty_like(x);
  const float* in = x.data_ptr<float>();
  float* out = y.data_ptr<float>();
  #pragma omp parallel for
  for (int64_t r = 0; r < rows; ++r) {
    float offset = 0.0f;
    for (int64_t begin = r * cols; begin < (r + 1) * cols; begin += block) {
      const int64_t end = std::min(begin + block, (r + 1) * cols);
      float sum = 0.0f;
      for (int64_t i = begin; i < end; ++i) out[i] = sum += in[i];
      for (int64_t i = begin; i < end; ++i) out[i] += offset;
      offset += sum;
    }
  }
  return y;
}
"""

extension = load_inline(
    "cumsum_two_pass", source, functions=["scan"], extra_cflags=["-O3", "-fopenmp"]
)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        assert dim == 1

    def forward(self, x):
        return extension.scan(x)
