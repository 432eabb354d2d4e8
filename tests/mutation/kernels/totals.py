"""A total over all threads and a sum for each column, by reduction and by atomic addition."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <vector>

std::vector<torch::Tensor> totals(torch::Tensor x, torch::Tensor y) {
  const int64_t rows = x.size(0), columns = x.size(1);
  torch::Tensor total = torch::zeros({}, x.options());
  torch::Tensor sums = torch::zeros({columns}, x.options().dtype(torch::kFloat64));
  const float* xs = x.data_ptr<float>();
  const float* ys = y.data_ptr<float>();
  double* ss = sums.data_ptr<double>();
  double all = 0;
  #pragma omp parallel for schedule(static) reduction(+:all)
  for (int64_t i = 0; i < rows * columns; ++i) {
    const double off = xs[i] - ys[i];
    all += off * off;
  }
  #pragma omp parallel for schedule(static, 1)
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      #pragma omp atomic
      ss[c] += xs[r * columns + c];
    }
  total.data_ptr<float>()[0] = (float)(all / (double)(rows * columns));
  return {total, sums.to(torch::kFloat32)};
}
"""

kernels = load_inline(
    name="totals",
    cpp_sources=SOURCE,
    functions=["totals"],
    extra_cflags=["-O3", "-march=native", "-fopenmp"],
    extra_ldflags=["-fopenmp"],
)


class ModelNew(nn.Module):
    def forward(self, x, y):
        total, sums = kernels.totals(x, y)
        return total, sums


class Model(nn.Module):
    def forward(self, x, y):
        return torch.mean((x - y) ** 2), x.sum(0)


def get_inputs():
    return [torch.randn(3000, 37), torch.randn(3000, 37)]


def get_init_inputs():
    return []
