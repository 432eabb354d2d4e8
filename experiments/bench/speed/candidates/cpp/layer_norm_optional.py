# problem: level1_6_layer_norm
# expected: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

layer_norm_source = """
#include <torch/extension.h>
#include <cmath>
#include <vector>

std::vector<torch::Tensor> layer_norm(torch::Tensor x, c10::optional<torch::Tensor> weight,
                                      std::optional<torch::Tensor> bias, double eps) {
  const int64_t dim = x.size(-1);
  auto flat = x.reshape({-1, dim}).contiguous();
  const int64_t rows = flat.size(0);
  auto y = torch::empty_like(flat);
  auto mean = torch::empty({rows}, flat.options().dtype(torch::kFloat32));
  const float* w = weight.has_value() ? weight->data_ptr<float>() : nullptr;
  const float* b = bias ? bias->data_ptr<float>() : nullptr;
  auto in = flat.accessor<float, 2>();
  auto out = y.accessor<float, 2>();
  auto means = mean.accessor<float, 1>();
  #pragma omp parallel for
  for (int64_t r = 0; r < rows; r++) {
    double sum = 0.0, squares = 0.0;
    for (int64_t c = 0; c < dim; c++) sum += in[r][c];
    const double mu = sum / dim;
    for (int64_t c = 0; c < dim; c++) squares += (in[r][c] - mu) * (in[r][c] - mu);
    const float scale = static_cast<float>(1.0 / std::sqrt(squares / dim + eps));
    for (int64_t c = 0; c < dim; c++) {
      float v = (in[r][c] - static_cast<float>(mu)) * scale;
      if (w) v *= w[c];
      if (b) v += b[c];
      out[r][c] = v;
    }
    means[r] = static_cast<float>(mu);
  }
  return {y.view(x.sizes()), mean};
}
"""

ext = load_inline(
    name="layer_norm_optional_cpu",
    cpp_sources=layer_norm_source,
    functions=["layer_norm"],
    verbose=True,
    extra_cflags=["-O3 -fopenmp"],
)


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.norm = nn.LayerNorm(dim)

    def forward(self, x):
        return ext.layer_norm(x, self.norm.weight, self.norm.bias, self.norm.eps)[0]
