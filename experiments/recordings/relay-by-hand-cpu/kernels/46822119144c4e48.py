# plan: a thread a row, row in a stack buffer: scale, bias and mask, then max, exp (libm), sum, write
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <limits>

constexpr int64_t MOST = 1024;

torch::Tensor masked_softmax(torch::Tensor scores, torch::Tensor bias, torch::Tensor keep, double factor) {
  TORCH_CHECK(scores.is_contiguous() && bias.is_contiguous() && keep.is_contiguous(), "contiguous");
  const int64_t batch = scores.size(0), heads = scores.size(1), length = scores.size(2);
  TORCH_CHECK(length <= MOST, "rows of at most 1024");
  torch::Tensor out = torch::empty_like(scores);
  const float* s = scores.data_ptr<float>();
  const float* bs = bias.data_ptr<float>();
  const bool* ks = keep.data_ptr<bool>();
  float* os = out.data_ptr<float>();
  const float scale = (float)factor;
  #pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < batch * heads * length; ++row) {
    const int64_t in_head = row % (heads * length), b = row / (heads * length);
    const float* in = s + row * length;
    const float* bi = bs + in_head * length;
    const bool* k = ks + b * length;
    float* o = os + row * length;
    float v[MOST];
    float top = -std::numeric_limits<float>::infinity();
    #pragma omp simd reduction(max : top)
    for (int64_t c = 0; c < length; ++c) {
      v[c] = k[c] ? in[c] * scale + bi[c] : -std::numeric_limits<float>::infinity();
      top = v[c] > top ? v[c] : top;
    }
    float sum = 0.f;
    for (int64_t c = 0; c < length; ++c) { v[c] = std::exp(v[c] - top); sum += v[c]; }
    const float inverse = 1.f / sum;
    #pragma omp simd
    for (int64_t c = 0; c < length; ++c) o[c] = v[c] * inverse;
  }
  return out;
}
"""

kernels = load_inline(
    name="masked_softmax",
    cpp_sources=SOURCE,
    functions=["masked_softmax"],
    extra_cflags=["-O3", "-march=native", "-fopenmp"],
)


class ModelNew(nn.Module):
    def __init__(self, heads: int, length: int, scale: float):
        super().__init__()
        self.scale = scale
        self.bias = nn.Parameter(torch.randn(heads, length, length))

    def forward(self, scores, keep):
        return kernels.masked_softmax(scores.contiguous(), self.bias, keep.contiguous(), self.scale)
