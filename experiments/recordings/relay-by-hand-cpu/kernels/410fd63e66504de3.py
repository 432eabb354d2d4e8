# plan: one AVX-512 load for 16 outputs, the shifted inputs by valignd of two registers
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cstdint>
#include <immintrin.h>

template <int N>
static inline __m512 back(__m512i now, __m512i before) {
  return _mm512_castsi512_ps(_mm512_alignr_epi32(now, before, 16 - N));
}

torch::Tensor causal(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
  TORCH_CHECK(x.is_contiguous() && w.size(2) == 4, "contiguous input and four taps expected");
  torch::Tensor y = torch::empty_like(x);
  const int64_t rows = x.size(0) * x.size(1), channels = x.size(1), length = x.size(2);
  const float* xs = x.data_ptr<float>();
  const float* ws = w.data_ptr<float>();
  const float* bs = b.data_ptr<float>();
  float* ys = y.data_ptr<float>();
  #pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t c = r % channels;
    const __m512 w0 = _mm512_set1_ps(ws[4 * c]), w1 = _mm512_set1_ps(ws[4 * c + 1]);
    const __m512 w2 = _mm512_set1_ps(ws[4 * c + 2]), w3 = _mm512_set1_ps(ws[4 * c + 3]);
    const __m512 bias = _mm512_set1_ps(bs[c]);
    const float* in = xs + r * length;
    float* o = ys + r * length;
    __m512i before = _mm512_setzero_si512();
    for (int64_t t = 0; t < length; t += 16) {
      const int64_t left = length - t;
      const __mmask16 mask = left >= 16 ? 0xffff : (__mmask16)((1u << left) - 1);
      const __m512i now = _mm512_maskz_loadu_epi32(mask, in + t);
      __m512 v = _mm512_fmadd_ps(w3, _mm512_castsi512_ps(now), bias);
      v = _mm512_fmadd_ps(w2, back<1>(now, before), v);
      v = _mm512_fmadd_ps(w1, back<2>(now, before), v);
      v = _mm512_fmadd_ps(w0, back<3>(now, before), v);
      _mm512_mask_storeu_ps(o + t, mask, v);
      before = now;
    }
  }
  return y;
}
"""

kernels = load_inline(
    name="causal_filter_registers",
    cpp_sources=SOURCE,
    functions=["causal"],
    extra_cflags=["-O3", "-march=native", "-fopenmp"],
)


class ModelNew(nn.Module):
    def __init__(self, channels: int, taps: int):
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, taps, groups=channels, padding=taps - 1)
        self.taps = taps

    def forward(self, x):
        return kernels.causal(x.contiguous(), self.conv.weight, self.conv.bias)
