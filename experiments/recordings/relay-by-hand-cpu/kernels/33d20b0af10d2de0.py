# plan: AVX-512 scan of 16 elements in a register, the carry broadcast from lane 15
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cstdint>
#include <immintrin.h>

template <int N>
static inline __m512 shifted(__m512 v) {
  return _mm512_castsi512_ps(
      _mm512_alignr_epi32(_mm512_castps_si512(v), _mm512_setzero_si512(), 16 - N));
}

torch::Tensor running_sum(torch::Tensor x) {
  TORCH_CHECK(x.is_contiguous() && x.dim() == 2 && x.size(1) % 16 == 0, "columns in sixteens");
  torch::Tensor out = torch::empty_like(x);
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* xs = x.data_ptr<float>();
  float* os = out.data_ptr<float>();
  const __m512i last = _mm512_set1_epi32(15);
  #pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = xs + r * cols;
    float* o = os + r * cols;
    __m512 carry = _mm512_setzero_ps();
    for (int64_t c = 0; c < cols; c += 16) {
      __m512 v = _mm512_loadu_ps(in + c);
      v = _mm512_add_ps(v, shifted<1>(v));
      v = _mm512_add_ps(v, shifted<2>(v));
      v = _mm512_add_ps(v, shifted<4>(v));
      v = _mm512_add_ps(v, shifted<8>(v));
      v = _mm512_add_ps(v, carry);
      _mm512_storeu_ps(o + c, v);
      carry = _mm512_permutexvar_ps(last, v);
    }
  }
  return out;
}
"""

kernels = load_inline(
    name="running_sum_scan",
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
