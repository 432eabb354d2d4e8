# plan: as turn 2, with the input prefetched 2 KiB ahead
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cstdint>
#include <immintrin.h>

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
    const float w0 = ws[4 * c], w1 = ws[4 * c + 1], w2 = ws[4 * c + 2], w3 = ws[4 * c + 3], bias = bs[c];
    const float* in = xs + r * length;
    float* o = ys + r * length;
    o[0] = bias + w3 * in[0];
    o[1] = bias + w2 * in[0] + w3 * in[1];
    o[2] = bias + w1 * in[0] + w2 * in[1] + w3 * in[2];
    int64_t t = 3;
    for (; t < length && ((uintptr_t)(o + t) & 63); ++t)
      o[t] = bias + w0 * in[t - 3] + w1 * in[t - 2] + w2 * in[t - 1] + w3 * in[t];
    const __m512 v0 = _mm512_set1_ps(w0), v1 = _mm512_set1_ps(w1), v2 = _mm512_set1_ps(w2);
    const __m512 v3 = _mm512_set1_ps(w3), vb = _mm512_set1_ps(bias);
    for (; t + 16 <= length; t += 16) {
      _mm_prefetch((const char*)(in + t + 512), _MM_HINT_T0);
      __m512 v = _mm512_fmadd_ps(v3, _mm512_loadu_ps(in + t), vb);
      v = _mm512_fmadd_ps(v2, _mm512_loadu_ps(in + t - 1), v);
      v = _mm512_fmadd_ps(v1, _mm512_loadu_ps(in + t - 2), v);
      v = _mm512_fmadd_ps(v0, _mm512_loadu_ps(in + t - 3), v);
      _mm512_stream_ps(o + t, v);
    }
    for (; t < length; ++t)
      o[t] = bias + w0 * in[t - 3] + w1 * in[t - 2] + w2 * in[t - 1] + w3 * in[t];
  }
  _mm_sfence();
  return y;
}
"""

kernels = load_inline(
    name="causal_filter_ahead",
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
