# plan: rows | vec=4 threads=all chunk=256 unroll=on maths=poly stores=stream stage=stack passes=exact acc=fp64

import torch
import torch.nn as nn
import torch.nn.functional as F

heads = 8
length = 250
scale = 0.125

from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>
#include <cstring>
#include <vector>
#include <algorithm>
#include <omp.h>
#if defined(__AVX__)
#include <immintrin.h>
#endif
#pragma GCC optimize("no-math-errno", "no-trapping-math")
#if defined(__x86_64__)
#pragma GCC target("prefer-vector-width=128")
#endif
#pragma GCC optimize("unroll-loops")

static inline float from_bits(int32_t i) { float f; std::memcpy(&f, &i, 4); return f; }
static inline int32_t to_bits(float f) { int32_t i; std::memcpy(&i, &f, 4); return i; }
static inline float reduce_exp_(float x, float& q) {
  const float n = nearbyintf(x * 1.442695041f);
  const float r = fmaf(n, -1.428606820e-6f, fmaf(n, -0.693145752f, x));
  float p = 1.395067933e-3f;
  p = fmaf(p, r, 8.369020853e-3f);
  p = fmaf(p, r, 4.166620376e-2f);
  p = fmaf(p, r, 1.666651791e-1f);
  p = fmaf(p, r, 5.000000095e-1f);
  q = fmaf(p * r, r, r);
  return n;
}
static inline float exp_(float x) {
  const float y = x > 88.72284f ? 89.0f : (x < -86.9f ? -86.9f : x);
  float q;
  const int32_t n = (int32_t)reduce_exp_(y, q);
  const float value = (q + 1.0f) * 2.0f * from_bits((n + 126) << 23);
  return x < -86.9f ? 0.0f : value;
}
static inline void stream_out(float* to, const float* from, int64_t n) {
  int64_t i = 0;
#if defined(__AVX__)
  for (; i < n && (reinterpret_cast<uintptr_t>(to + i) & 31); ++i) to[i] = from[i];
  for (; i + 8 <= n; i += 8) _mm256_stream_ps(to + i, _mm256_loadu_ps(from + i));
#endif
  for (; i < n; ++i) to[i] = from[i];
}

torch::Tensor fused_0(torch::Tensor t0, torch::Tensor t1, torch::Tensor t2) {
  TORCH_CHECK(t0.numel() == 2000, "fused_0: operand 0 has another size");
  t0 = t0.contiguous();
  const bool* __restrict__ a0 = t0.data_ptr<bool>();
  TORCH_CHECK(t1.numel() == 4000000, "fused_0: operand 1 has another size");
  t1 = t1.contiguous();
  const float* __restrict__ a1 = t1.data_ptr<float>();
  TORCH_CHECK(t2.numel() == 500000, "fused_0: operand 2 has another size");
  t2 = t2.contiguous();
  const float* __restrict__ a2 = t2.data_ptr<float>();
  auto r0 = torch::empty({8, 8, 250, 250}, t0.options().dtype(torch::kFloat32));
  float* __restrict__ o0 = r0.data_ptr<float>();
#pragma omp parallel for schedule(static)
  for (int64_t task = 0; task < 63; ++task) {
    const int64_t last = std::min<int64_t>(16000, (task + 1) * 256);
    std::vector<int32_t> m0(250);
    for (int64_t row = task * 256; row < last; ++row) {
      const bool* __restrict__ p0 = a0 + (row / 2000) * 250;
      const float* __restrict__ p1 = a1 + row * 250;
      const float* __restrict__ p2 = a2 + (row) % 2000 * 250;
      for (int64_t i = 0; i < 250; ++i) m0[i] = p0[i];
      alignas(64) float g0[250];
      float c4 = -INFINITY;
#pragma omp simd reduction(max:c4)
      for (int64_t i = 0; i < 250; ++i) {
        const bool x0 = m0[i];
        const float x1 = p1[i];
        const float x2 = p2[i];
        const bool v0 = !x0;
        const float v1 = x1 * 0.125f;
        const float v2 = v1 + x2;
        const float v3 = (v0 ? (-INFINITY) : v2);
        c4 = v3 > c4 ? v3 : c4;
      }
      const float v4 = (float)c4;
      double c7 = 0;
#pragma omp simd reduction(+:c7)
      for (int64_t i = 0; i < 250; ++i) {
        const bool x0 = m0[i];
        const float x1 = p1[i];
        const float x2 = p2[i];
        const bool v0 = !x0;
        const float v1 = x1 * 0.125f;
        const float v2 = v1 + x2;
        const float v3 = (v0 ? (-INFINITY) : v2);
        const float v5 = v3 - v4;
        const float v6 = exp_(v5);
        g0[i] = v6;
        c7 = c7 + v6;
      }
      const float v7 = (float)c7;
      float* __restrict__ q0 = o0 + row * 250;
      for (int64_t block = 0; block < 250; block += 256) {
        const int64_t stop = std::min<int64_t>(250, block + 256);
        alignas(64) float w0[256];
#pragma omp simd
        for (int64_t i = block; i < stop; ++i) {
          const float v6 = g0[i];
          const float v8 = v6 / v7;
          w0[i - block] = v8;
        }
        stream_out(q0 + block, w0, stop - block);
      }
    }
  }
  return r0;
}
"""

kernels = load_inline(
    name="tuned_3c2b9d5ea0e2",
    cpp_sources=[SOURCE],
    functions=["fused_0"],
    extra_cflags=["-O3", "-march=native", "-fopenmp"],
    extra_ldflags=["-fopenmp"],
)

class ModelNew(nn.Module):
    def __init__(self, heads: int, length: int, scale: float):
        super().__init__()
        self.scale = scale
        self.bias = nn.Parameter(torch.randn(heads, length, length))

    def forward(self, scores, keep):
        t0 = keep.reshape(8, 1, 1, 250)
        t1 = kernels.fused_0(t0, scores, self.bias)
        return t1
