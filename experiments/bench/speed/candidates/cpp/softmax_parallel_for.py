# problem: level1_4_softmax
# expected: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/extension.h>
#include <ATen/Parallel.h>
#include <algorithm>
#include <cmath>
#include <limits>

at::Tensor softmax_rows(const at::Tensor& input) {
  TORCH_CHECK(input.dim() == 2, "expected a matrix but got ", input.dim(), " dimensions");
  const at::Tensor x = input.contiguous();
  at::Tensor y = at::empty(x.sizes(), x.options());
  const auto rows = x.size(0), cols = x.size(1);
  const float* xp = x.const_data_ptr<float>();
  float* yp = y.mutable_data_ptr<float>();
  at::parallel_for(0, rows, /*grain_size=*/16, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const float* in = xp + r * cols;
      float* out = yp + r * cols;
      float top = -std::numeric_limits<float>::infinity();
      for (int64_t c = 0; c < cols; ++c) top = std::max(top, in[c]);
      float sum = 0.0f;
      for (int64_t c = 0; c < cols; ++c) {
        out[c] = std::exp(in[c] - top);
        sum += out[c];
      }
      const float inverse = 1.0f / sum;
      for (int64_t c = 0; c < cols; ++c) out[c] *= inverse;
    }
  });
  return y;
}
"""

softmax = load_inline(
    name="softmax_parallel_for",
    cpp_sources=[source],
    functions={"softmax_rows": "Softmax over the rows of a matrix"},
    extra_cflags=["-O3", "-fopenmp", "-ffast-math", "-march=native"],
    verbose=True,
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return softmax.softmax_rows(x)
