"""std::for_each with an execution policy.

problem: level1_19_max_pool2d
pace: slow
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <algorithm>
#include <execution>
#include <limits>
#include <numeric>
#include <vector>

torch::Tensor pool(torch::Tensor x, int64_t size, int64_t stride, int64_t padding) {
  const int64_t planes = x.size(0) * x.size(1), height = x.size(2), width = x.size(3);
  const int64_t high = (height + 2 * padding - size) / stride + 1;
  const int64_t wide = (width + 2 * padding - size) / stride + 1;
  auto y = torch::empty({x.size(0), x.size(1), high, wide}, x.options());
  std::vector<int64_t> all(planes);
  std::iota(all.begin(), all.end(), 0);
  std::for_each(std::execution::unseq, all.begin(), all.end(), [&](int64_t plane) {
    const float* in = x.data_ptr<float>() + plane * height * width;
    float* out = y.data_ptr<float>() + plane * high * wide;
    for (int64_t i = 0; i < high; ++i)
      for (int64_t j = 0; j < wide; ++j) {
        float best = -std::numeric_limits<float>::infinity();
        for (int64_t h = std::max<int64_t>(0, i * stride - padding);
             h < std::min(height, i * stride - padding + size); ++h)
          for (int64_t w = std::max<int64_t>(0, j * stride - padding);
               w < std::min(width, j * stride - padding + size); ++w)
            best = std::max(best, in[h * width + w]);
        out[i * wide + j] = best;
      }
  });
  return y;
}
"""

extension = load_inline(
    "max_pool_execution", source, functions=["pool"], extra_cflags=["-std=c++20", "-O3"]
)


class ModelNew(nn.Module):
    def __init__(self, kernel_size, stride, padding):
        super().__init__()
        self.arguments = kernel_size, stride, padding

    def forward(self, x):
        return extension.pool(x, *self.arguments)
