# plan: rows | vec=16 threads=all chunk=16 unroll=off maths=libm stores=plain stage=stack passes=exact acc=fp32

import torch
import torch.nn as nn
import torch.nn.functional as F

dim = 1000

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
#pragma GCC target("prefer-vector-width=512")
#endif

static inline float rsqrt_(float x) { return 1.0f / sqrtf(x); }
static inline float sigmoid_(float x) { return 1.0f / (1.0f + expf(-x)); }

std::vector<torch::Tensor> fused_0(torch::Tensor t0, torch::Tensor t1, torch::Tensor t2, torch::Tensor t3, torch::Tensor t4) {
  TORCH_CHECK(t0.numel() == 1300000, "fused_0: operand 0 has another size");
  t0 = t0.contiguous();
  const float* __restrict__ a0 = t0.data_ptr<float>();
  TORCH_CHECK(t1.numel() == 1300000, "fused_0: operand 1 has another size");
  t1 = t1.contiguous();
  const float* __restrict__ a1 = t1.data_ptr<float>();
  TORCH_CHECK(t2.numel() == 1000, "fused_0: operand 2 has another size");
  t2 = t2.contiguous();
  const float* __restrict__ a2 = t2.data_ptr<float>();
  TORCH_CHECK(t3.numel() == 1000, "fused_0: operand 3 has another size");
  t3 = t3.contiguous();
  const float* __restrict__ a3 = t3.data_ptr<float>();
  TORCH_CHECK(t4.numel() == 1300000, "fused_0: operand 4 has another size");
  t4 = t4.contiguous();
  const float* __restrict__ a4 = t4.data_ptr<float>();
  auto r0 = torch::empty({1300, 1000}, t0.options().dtype(torch::kFloat32));
  float* __restrict__ o0 = r0.data_ptr<float>();
  auto r1 = torch::empty({1300, 1000}, t0.options().dtype(torch::kFloat32));
  float* __restrict__ o1 = r1.data_ptr<float>();
#pragma omp parallel for schedule(static)
  for (int64_t task = 0; task < 82; ++task) {
    const int64_t last = std::min<int64_t>(1300, (task + 1) * 16);
    for (int64_t row = task * 16; row < last; ++row) {
      const float* __restrict__ p0 = a0 + row * 1000;
      const float* __restrict__ p1 = a1 + row * 1000;
      const float* __restrict__ p2 = a2;
      const float* __restrict__ p3 = a3;
      const float* __restrict__ p4 = a4 + row * 1000;
      float c1 = 0;
#pragma omp simd reduction(+:c1)
      for (int64_t i = 0; i < 1000; ++i) {
        const float x0 = p0[i];
        const float x1 = p1[i];
        const float v0 = x0 + x1;
        c1 = c1 + v0;
      }
      const float v1 = (float)c1;
      const float v2 = v1 * 0.001f;
      float c5 = 0;
#pragma omp simd reduction(+:c5)
      for (int64_t i = 0; i < 1000; ++i) {
        const float x0 = p0[i];
        const float x1 = p1[i];
        const float v0 = x0 + x1;
        const float v3 = v0 - v2;
        const float v4 = v3 * v3;
        c5 = c5 + v4;
      }
      const float v5 = (float)c5;
      const float v6 = v5 * 0.001f;
      const float v7 = v6 + 1e-05f;
      const float v8 = rsqrt_(v7);
      float* __restrict__ q0 = o0 + row * 1000;
      float* __restrict__ q1 = o1 + row * 1000;
#pragma omp simd
      for (int64_t i = 0; i < 1000; ++i) {
        const float x0 = p0[i];
        const float x1 = p1[i];
        const float x2 = p2[i];
        const float x3 = p3[i];
        const float x4 = p4[i];
        const float v0 = x0 + x1;
        const float v3 = v0 - v2;
        const float v9 = v3 * v8;
        const float v10 = v9 * x2;
        const float v11 = v10 + x3;
        const float v12 = sigmoid_(x4);
        const float v13 = v11 * v12;
        q0[i] = v0;
        q1[i] = v13;
      }
    }
  }
  return {r0, r1};
}
"""

kernels = load_inline(
    name="tuned_ea7704b8bebb",
    cpp_sources=[SOURCE],
    functions=["fused_0"],
    extra_cflags=["-O3", "-march=native", "-fopenmp"],
    extra_ldflags=["-fopenmp"],
)

class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.norm = nn.LayerNorm(dim)

    def forward(self, x, residual, gate):
        t0, t1 = kernels.fused_0(x, residual, self.norm.weight, self.norm.bias, gate)
        return (t1, t0)
