# plan: rows | vec=4 threads=half chunk=4 unroll=off maths=poly stores=plain stage=stack passes=exact acc=fp64

import torch
import torch.nn as nn
import torch.nn.functional as F

from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>
#include <cstring>
#include <vector>
#include <algorithm>
#include <omp.h>
#pragma GCC optimize("no-math-errno", "no-trapping-math")
#if defined(__x86_64__)
#pragma GCC target("prefer-vector-width=128")
#endif

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

torch::Tensor fused_0(torch::Tensor t0) {
  TORCH_CHECK(t0.numel() == 4000000, "fused_0: operand 0 has another size");
  t0 = t0.contiguous();
  const float* __restrict__ a0 = t0.data_ptr<float>();
  auto r0 = torch::empty({4000, 1000}, t0.options().dtype(torch::kFloat32));
  float* __restrict__ o0 = r0.data_ptr<float>();
#pragma omp parallel for schedule(static) num_threads(std::max(1, omp_get_max_threads() / 2))
  for (int64_t task = 0; task < 1000; ++task) {
    const int64_t last = std::min<int64_t>(4000, (task + 1) * 4);
    for (int64_t row = task * 4; row < last; ++row) {
      const float* __restrict__ p0 = a0 + row * 1000;
      alignas(64) float g0[1000];
      float c0 = -INFINITY;
#pragma omp simd reduction(max:c0)
      for (int64_t i = 0; i < 1000; ++i) {
        const float x0 = p0[i];
        c0 = x0 > c0 ? x0 : c0;
      }
      const float v0 = (float)c0;
      double c3 = 0;
#pragma omp simd reduction(+:c3)
      for (int64_t i = 0; i < 1000; ++i) {
        const float x0 = p0[i];
        const float v1 = x0 - v0;
        const float v2 = exp_(v1);
        g0[i] = v2;
        c3 = c3 + v2;
      }
      const float v3 = (float)c3;
      float* __restrict__ q0 = o0 + row * 1000;
#pragma omp simd
      for (int64_t i = 0; i < 1000; ++i) {
        const float v2 = g0[i];
        const float v4 = v2 / v3;
        q0[i] = v4;
      }
    }
  }
  return r0;
}
"""

kernels = load_inline(
    name="tuned_a67c0fd2c83c",
    cpp_sources=[SOURCE],
    functions=["fused_0"],
    extra_cflags=["-O3", "-march=native", "-fopenmp"],
    extra_ldflags=["-fopenmp"],
)

class ModelNew(nn.Module):
    def forward(self, x):
        t0 = kernels.fused_0(x)
        return t0
