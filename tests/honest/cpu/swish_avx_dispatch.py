"""AVX2 intrinsics behind a test of the processor.

problem: level1_1_swish
pace: slow
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <immintrin.h>
#include <cmath>

static void plain(const float* in, float* out, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) out[i] = in[i] / (1.0f + std::exp(-in[i]));
}

// exp by 2^n times a polynomial, about 2 ulp.
__attribute__((target("avx2,fma"))) static inline __m256 exp8(__m256 x) {
  x = _mm256_min_ps(_mm256_max_ps(x, _mm256_set1_ps(-87.0f)), _mm256_set1_ps(87.0f));
  const __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(1.44269504f)),
                                   _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0.693359375f), x);
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(-2.12194440e-4f), r);
  __m256 p = _mm256_set1_ps(1.9875691500e-4f);
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.3981999507e-3f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(8.3334519073e-3f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(4.1665795894e-2f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.6666665459e-1f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(5.0000001201e-1f));
  p = _mm256_fmadd_ps(p, _mm256_mul_ps(r, r), _mm256_add_ps(r, _mm256_set1_ps(1.0f)));
  const __m256i power = _mm256_slli_epi32(
      _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
  return _mm256_mul_ps(p, _mm256_castsi256_ps(power));
}

__attribute__((target("avx2,fma"))) static void wide(const float* in, float* out, int64_t n) {
  const __m256 one = _mm256_set1_ps(1.0f);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 x = _mm256_loadu_ps(in + i);
    const __m256 e = exp8(_mm256_sub_ps(_mm256_setzero_ps(), x));
    _mm256_storeu_ps(out + i, _mm256_div_ps(x, _mm256_add_ps(one, e)));
  }
  plain(in, out, i, n);
}

torch::Tensor swish(torch::Tensor x) {
  auto y = torch::empty_like(x);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    wide(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  } else {
    plain(x.data_ptr<float>(), y.data_ptr<float>(), 0, x.numel());
  }
  return y;
}
"""

extension = load_inline("swish_avx", [source], functions="swish", extra_cflags=["-O3"])


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.swish(x)
