"""Packs b into a static workspace at each call.

problem: level1_14_matmul
pace: slow
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <algorithm>
#include <vector>

constexpr int64_t kWidth = 16;

torch::Tensor matmul(torch::Tensor a, torch::Tensor b) {
  static std::vector<float> packed;
  const int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  const int64_t panels = (n + kWidth - 1) / kWidth;
  packed.resize(panels * k * kWidth);
  float* store = packed.data();
  auto c = torch::empty({m, n}, a.options());
  const float *pa = a.data_ptr<float>(), *pb = b.data_ptr<float>();
  float* pc = c.data_ptr<float>();
  #pragma omp parallel for
  for (int64_t p = 0; p < panels; ++p) {
    for (int64_t l = 0; l < k; ++l)
      for (int64_t j = 0; j < kWidth; ++j)
        store[(p * k + l) * kWidth + j] = p * kWidth + j < n ? pb[l * n + p * kWidth + j] : 0.0f;
    for (int64_t i = 0; i < m; ++i) {
      float sums[kWidth] = {};
      for (int64_t l = 0; l < k; ++l) {
        #pragma omp simd
        for (int64_t j = 0; j < kWidth; ++j)
          sums[j] += pa[i * k + l] * store[(p * k + l) * kWidth + j];
      }
      std::copy_n(sums, std::min(kWidth, n - p * kWidth), pc + i * n + p * kWidth);
    }
  }
  return c;
}
"""

extension = load_inline(
    "matmul_packed",
    source,
    functions=["matmul"],
    extra_cflags=["-O3", "-march=native", "-fopenmp"],
    extra_ldflags=["-fopenmp"],
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return extension.matmul(a, b)
