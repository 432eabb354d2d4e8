"""Welford's sums, alloca scratch and OpenMP tasks.

problem: level1_6_layer_norm
pace: slow
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <alloca.h>
#include <cmath>

torch::Tensor norm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps) {
  const int64_t dim = x.size(-1), rows = x.numel() / dim;
  auto y = torch::empty_like(x);
  const float* in = x.data_ptr<float>();
  const float *w = weight.data_ptr<float>(), *b = bias.data_ptr<float>();
  float* out = y.data_ptr<float>();
  #pragma omp parallel
  #pragma omp single
  #pragma omp taskloop grainsize(64)
  for (int64_t r = 0; r < rows; ++r) {
    float* copy = static_cast<float*>(alloca(dim * sizeof(float)));
    float mean = 0.0f, squares = 0.0f;
    for (int64_t c = 0; c < dim; ++c) {
      copy[c] = in[r * dim + c];
      const float delta = copy[c] - mean;
      mean += delta / static_cast<float>(c + 1);
      squares += delta * (copy[c] - mean);
    }
    const float scale = 1.0f / std::sqrt(squares / dim + static_cast<float>(eps));
    for (int64_t c = 0; c < dim; ++c) out[r * dim + c] = (copy[c] - mean) * scale * w[c] + b[c];
  }
  return y;
}
"""

extension = load_inline(
    name="layer_norm_welford",
    cpp_sources=source,
    functions=["norm"],
    extra_cflags=["-O2", "-fopenmp"],
)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)

    def forward(self, x):
        return extension.norm(x, self.norm.weight, self.norm.bias, self.norm.eps)
