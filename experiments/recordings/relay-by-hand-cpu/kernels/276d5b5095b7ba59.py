# plan: AVX-512 with an exponential of its own (degree 5 polynomial), masks for keep and for the tail, row kept in a buffer
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cstdint>
#include <immintrin.h>

constexpr int64_t MOST = 1024;

// For x <= 0: x = n ln 2 + r with |r| <= ln(2) / 2, then exp(r) by a polynomial, scaled by 2^n.
static inline __m512 exponential(__m512 x) {
  x = _mm512_max_ps(x, _mm512_set1_ps(-87.f));
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)), 0);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), r);
  __m512 p = _mm512_set1_ps(1.f / 120.f);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.f / 24.f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.f / 6.f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.5f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.f));
  return _mm512_scalef_ps(p, n);
}

torch::Tensor masked_softmax(torch::Tensor scores, torch::Tensor bias, torch::Tensor keep, double factor) {
  TORCH_CHECK(scores.is_contiguous() && bias.is_contiguous() && keep.is_contiguous(), "contiguous");
  const int64_t batch = scores.size(0), heads = scores.size(1), length = scores.size(2);
  TORCH_CHECK(length <= MOST, "rows of at most 1024");
  torch::Tensor out = torch::empty_like(scores);
  const float* s = scores.data_ptr<float>();
  const float* bs = bias.data_ptr<float>();
  const bool* ks = keep.data_ptr<bool>();
  float* os = out.data_ptr<float>();
  const __m512 scale = _mm512_set1_ps((float)factor);
  const int64_t vectors = (length + 15) / 16;
  #pragma omp parallel for schedule(static)
  for (int64_t pair = 0; pair < batch * heads; ++pair) {
    const bool* k = ks + pair / heads * length;
    __mmask16 kept[MOST / 16];
    for (int64_t i = 0; i < vectors; ++i) {
      unsigned bits = 0;
      for (int64_t j = 0; j < 16 && i * 16 + j < length; ++j) bits |= (unsigned)k[i * 16 + j] << j;
      kept[i] = (__mmask16)bits;
    }
    for (int64_t q = 0; q < length; ++q) {
      const float* in = s + (pair * length + q) * length;
      const float* bi = bs + (pair % heads * length + q) * length;
      float* o = os + (pair * length + q) * length;
      __m512 v[MOST / 16];
      __m512 top = _mm512_set1_ps(-3.4e38f);
      for (int64_t i = 0; i < vectors; ++i) {
        v[i] = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(kept[i], in + 16 * i), scale,
                               _mm512_maskz_loadu_ps(kept[i], bi + 16 * i));
        top = _mm512_mask_max_ps(top, kept[i], top, v[i]);
      }
      const __m512 most = _mm512_set1_ps(_mm512_reduce_max_ps(top));
      __m512 sum = _mm512_setzero_ps();
      for (int64_t i = 0; i < vectors; ++i) {
        v[i] = _mm512_maskz_mov_ps(kept[i], exponential(_mm512_sub_ps(v[i], most)));
        sum = _mm512_add_ps(sum, v[i]);
      }
      const __m512 inverse = _mm512_set1_ps(1.f / _mm512_reduce_add_ps(sum));
      for (int64_t i = 0; i < vectors; ++i) {
        const int64_t left = length - 16 * i;
        const __mmask16 inside = left >= 16 ? 0xffff : (__mmask16)((1u << left) - 1);
        _mm512_mask_storeu_ps(o + 16 * i, inside, _mm512_mul_ps(v[i], inverse));
      }
    }
  }
  return out;
}
"""

kernels = load_inline(
    name="masked_softmax_avx512",
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
