"""Welford's recurrence, one row a thread at a time."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <vector>

std::vector<torch::Tensor> moments(torch::Tensor x) {
  const int64_t rows = x.size(0), columns = x.size(1);
  torch::Tensor variance = torch::empty({rows}, x.options());
  torch::Tensor mean = torch::empty({rows}, x.options());
  const float* xs = x.data_ptr<float>();
  float* vs = variance.data_ptr<float>();
  float* ms = mean.data_ptr<float>();
  #pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r) {
    const float* line = xs + r * columns;
    double middle = 0;
    double squares = 0;
    for (int64_t i = 0; i < columns; ++i) {
      const double off = line[i] - middle;
      middle += off / (double)(i + 1);
      squares += off * (line[i] - middle);
    }
    vs[r] = (float)(squares / (double)(columns - 1));
    ms[r] = (float)middle;
  }
  return {variance, mean};
}
"""

kernels = load_inline(
    name="moments",
    cpp_sources=SOURCE,
    functions=["moments"],
    extra_cflags=["-O3", "-march=native", "-fopenmp"],
    extra_ldflags=["-fopenmp"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        variance, mean = kernels.moments(x)
        return variance, mean
