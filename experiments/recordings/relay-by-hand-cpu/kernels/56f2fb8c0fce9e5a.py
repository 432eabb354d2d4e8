# plan: one pass, a thread a row, plain scalar running sum
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cstdint>

torch::Tensor running_sum(torch::Tensor x) {
  TORCH_CHECK(x.is_contiguous() && x.dim() == 2, "a contiguous matrix expected");
  torch::Tensor out = torch::empty_like(x);
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* xs = x.data_ptr<float>();
  float* os = out.data_ptr<float>();
  #pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = xs + r * cols;
    float* o = os + r * cols;
    float s = 0.f;
    for (int64_t c = 0; c < cols; ++c) { s += in[c]; o[c] = s; }
  }
  return out;
}
"""

kernels = load_inline(
    name="running_sum",
    cpp_sources=SOURCE,
    functions=["running_sum"],
    extra_cflags=["-O3", "-march=native", "-fopenmp"],
)


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return kernels.running_sum(x.contiguous())
