"""Every thread finds the largest of its part; after a barrier all divide by the largest."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <algorithm>
#include <cmath>
#include <omp.h>
#include <vector>

torch::Tensor scaled(torch::Tensor x) {
  const int64_t count = x.numel();
  torch::Tensor y = torch::empty_like(x);
  const float* xs = x.data_ptr<float>();
  float* ys = y.data_ptr<float>();
  std::vector<float> largest(omp_get_max_threads(), 0.0f);
  #pragma omp parallel
  {
    const int64_t me = omp_get_thread_num(), all = omp_get_num_threads();
    const int64_t first = count * me / all, last = count * (me + 1) / all;
    float mine = 0.0f;
    for (int64_t i = first; i < last; ++i) mine = std::max(mine, fabsf(xs[i]));
    largest[me] = mine;
    #pragma omp barrier
    float top = 0.0f;
    for (int64_t t = 0; t < all; ++t) top = std::max(top, largest[t]);
    for (int64_t i = first; i < last; ++i) ys[i] = xs[i] / top;
  }
  return y;
}
"""

kernels = load_inline(
    name="scaled",
    cpp_sources=SOURCE,
    functions=["scaled"],
    extra_cflags=["-O3", "-march=native", "-fopenmp"],
    extra_ldflags=["-fopenmp"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return kernels.scaled(x)


class Model(nn.Module):
    def forward(self, x):
        return x / x.abs().max()


def get_inputs():
    return [torch.randn(613, 509)]


def get_init_inputs():
    return []
