# problem: level1_10_row_moments
# expected: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/extension.h>
#include <tuple>

std::tuple<torch::Tensor, torch::Tensor> row_moments(torch::Tensor x) {
  TORCH_CHECK(x.dtype() == torch::kFloat32 && x.dim() == 2, "a float32 matrix, please");
  x = x.contiguous();
  const int64_t rows = x.size(0), cols = x.size(1);
  auto options = torch::TensorOptions().dtype(torch::kFloat32).device(x.device());
  auto var = torch::zeros({rows}, options);
  auto mean = torch::zeros({rows}, options);
  const float* p = x.data_ptr<float>();
  float* v = var.data_ptr<float>();
  float* m = mean.data_ptr<float>();
  at::parallel_for(0, rows, 64, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      double mu = 0.0, m2 = 0.0;
      for (int64_t c = 0; c < cols; ++c) {
        const double d = p[r * cols + c] - mu;
        mu += d / (c + 1);
        m2 += d * (p[r * cols + c] - mu);
      }
      v[r] = static_cast<float>(m2 / (cols - 1));
      m[r] = static_cast<float>(mu);
    }
  });
  return std::make_tuple(var, mean);
}
"""

moments = load_inline(
    name="row_moments_tuple",
    cpp_sources=[source],
    functions=["row_moments"],
    extra_cflags=["-O3", "-fopenmp"],
    verbose=True,
)


class ModelNew(nn.Module):
    def forward(self, x):
        return moments.row_moments(x)
