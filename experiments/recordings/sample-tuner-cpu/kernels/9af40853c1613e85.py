# plan: map | vec=16 threads=all chunk=256 unroll=off maths=crude stores=stream

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
#if defined(__AVX__)
#include <immintrin.h>
#endif
#pragma GCC optimize("no-math-errno", "no-trapping-math")
#if defined(__x86_64__)
#pragma GCC target("prefer-vector-width=512")
#endif

static inline void stream_out(float* to, const float* from, int64_t n) {
  int64_t i = 0;
#if defined(__AVX__)
  for (; i < n && (reinterpret_cast<uintptr_t>(to + i) & 31); ++i) to[i] = from[i];
  for (; i + 8 <= n; i += 8) _mm256_stream_ps(to + i, _mm256_loadu_ps(from + i));
#endif
  for (; i < n; ++i) to[i] = from[i];
}

torch::Tensor fused_0(torch::Tensor t0, torch::Tensor t1) {
  TORCH_CHECK(t0.numel() == 800, "fused_0: operand 0 has another size");
  t0 = t0.contiguous();
  const float* __restrict__ a0 = t0.data_ptr<float>();
  TORCH_CHECK(t1.numel() == 640000, "fused_0: operand 1 has another size");
  t1 = t1.contiguous();
  const float* __restrict__ a1 = t1.data_ptr<float>();
  auto r0 = torch::empty({800, 800}, t0.options().dtype(torch::kFloat32));
  float* __restrict__ o0 = r0.data_ptr<float>();
#pragma omp parallel for schedule(static)
  for (int64_t task = 0; task < 3; ++task) {
    const int64_t last = std::min<int64_t>(800, (task + 1) * 327);
    for (int64_t row = task * 327; row < last; ++row) {
      const float x0 = a0[row];
      const float* __restrict__ p1 = a1 + row * 800;
      float* __restrict__ q0 = o0 + row * 800;
      for (int64_t block = 0; block < 800; block += 256) {
        const int64_t stop = std::min<int64_t>(800, block + 256);
        alignas(64) float w0[256];
#pragma omp simd
        for (int64_t i = block; i < stop; ++i) {
          const float x1 = p1[i];
          const float v0 = x0 * x1;
          w0[i - block] = v0;
        }
        stream_out(q0 + block, w0, stop - block);
      }
    }
  }
  return r0;
}
"""

kernels = load_inline(
    name="tuned_ece189e9936d",
    cpp_sources=[SOURCE],
    functions=["fused_0"],
    extra_cflags=["-O3", "-march=native", "-fopenmp"],
    extra_ldflags=["-fopenmp"],
)

class ModelNew(nn.Module):
    def forward(self, diagonal, b):
        t0 = diagonal.reshape(800, 1)
        t1 = kernels.fused_0(t0, b)
        return t1
