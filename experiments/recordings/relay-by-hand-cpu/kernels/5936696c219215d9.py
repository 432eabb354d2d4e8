# plan: as before, two rows interleaved to hide the carry's latency, non-temporal stores
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

static inline __m512 scanned(__m512 v) {
  v = _mm512_add_ps(v, shifted<1>(v));
  v = _mm512_add_ps(v, shifted<2>(v));
  v = _mm512_add_ps(v, shifted<4>(v));
  return _mm512_add_ps(v, shifted<8>(v));
}

torch::Tensor running_sum(torch::Tensor x) {
  TORCH_CHECK(x.is_contiguous() && x.dim() == 2 && x.size(1) % 16 == 0 && x.size(0) % 2 == 0, "whole vectors, pairs of rows");
  torch::Tensor out = torch::empty_like(x);
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* xs = x.data_ptr<float>();
  float* os = out.data_ptr<float>();
  const __m512i last = _mm512_set1_epi32(15);
  #pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; r += 2) {
    const float* in = xs + r * cols;
    float* o = os + r * cols;
    __m512 carry_a = _mm512_setzero_ps(), carry_b = _mm512_setzero_ps();
    for (int64_t c = 0; c < cols; c += 16) {
      const __m512 a = _mm512_add_ps(scanned(_mm512_loadu_ps(in + c)), carry_a);
      const __m512 b = _mm512_add_ps(scanned(_mm512_loadu_ps(in + cols + c)), carry_b);
      _mm512_stream_ps(o + c, a);
      _mm512_stream_ps(o + cols + c, b);
      carry_a = _mm512_permutexvar_ps(last, a);
      carry_b = _mm512_permutexvar_ps(last, b);
    }
  }
  _mm_sfence();
  return out;
}
"""

kernels = load_inline(
    name="running_sum_pairs",
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
