"""Static and thread_local state in C++.

problem: level2_13_swiglu
pace: slow
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <array>
#include <atomic>
#include <cmath>

// exp(-x) = 2^-n e^-f, with e^-f from a table of 256 steps and a short series.
static const std::array<double, 256>& table() {
  static const std::array<double, 256> made = [] {
    std::array<double, 256> all{};
    for (int i = 0; i < 256; ++i) all[i] = std::exp2(-i / 256.0);
    return all;
  }();
  return made;
}

static inline double exp_negative(double x) {
  const double steps = x * 256.0 * 1.4426950408889634;
  const double whole = std::floor(steps);
  const int64_t n = static_cast<int64_t>(whole);
  const double rest = (steps - whole) * (0.6931471805599453 / 256.0);
  const double series = 1.0 - rest * (1.0 - rest * (0.5 - rest / 6.0));
  return std::ldexp(table()[n & 255] * series, static_cast<int>(-(n >> 8)));
}

static std::atomic<int64_t> calls{0};

torch::Tensor swiglu(torch::Tensor x, torch::Tensor bias, double limit) {
  thread_local int64_t mine = 0;
  mine = ++calls;
  const int64_t rows = x.size(0), dim = x.size(1) / 2;
  auto y = torch::empty({rows, dim}, x.options());
  const float *in = x.data_ptr<float>(), *b = bias.data_ptr<float>();
  float* out = y.data_ptr<float>();
  const float most = static_cast<float>(limit);
  #pragma omp parallel for
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = in + r * 2 * dim;
    for (int64_t c = 0; c < dim; ++c) {
      const float gate = row[c] + b[c];
      const float value = std::max(-most, std::min(most, row[dim + c] + b[dim + c]));
      const double e = exp_negative(std::max(-700.0, std::min(700.0, double(gate))));
      out[r * dim + c] = static_cast<float>(gate / (1.0 + e)) * value;
    }
  }
  TORCH_CHECK(mine > 0);
  return y;
}

int64_t calls_so_far() { return calls; }
"""

extension = load_inline(
    "swiglu_static",
    source,
    functions=["swiglu", "calls_so_far"],
    extra_cflags=["-O3", "-fopenmp", "-ffp-contract=fast", "-DNDEBUG"],
)


class ModelNew(nn.Module):
    def __init__(self, dim, limit):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(2 * dim))
        self.limit = limit

    def forward(self, x):
        return extension.swiglu(x, self.bias, self.limit)
