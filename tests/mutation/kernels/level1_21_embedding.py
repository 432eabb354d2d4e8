"""One copy of a row for each token."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cstring>

torch::Tensor looked_up(torch::Tensor table, torch::Tensor tokens) {
  const int64_t count = tokens.numel(), width = table.size(1);
  torch::Tensor y = torch::empty({tokens.size(0), tokens.size(1), width}, table.options());
  const float* rows = table.data_ptr<float>();
  const int64_t* wanted = tokens.data_ptr<int64_t>();
  float* ys = y.data_ptr<float>();
  #pragma omp parallel for schedule(static)
  for (int64_t t = 0; t < count; ++t)
    std::memcpy(ys + t * width, rows + wanted[t] * width, width * sizeof(float));
  return y;
}
"""

kernels = load_inline(
    name="looked_up",
    cpp_sources=SOURCE,
    functions=["looked_up"],
    extra_cflags=["-O3", "-march=native", "-fopenmp"],
    extra_ldflags=["-fopenmp"],
)


class ModelNew(nn.Module):
    def __init__(self, vocabulary, dim):
        super().__init__()
        self.table = nn.Embedding(vocabulary, dim)

    def forward(self, tokens):
        return kernels.looked_up(self.table.weight, tokens)
