# plan: map | vec=4 threads=512 maths=fast loads=ldg stores=stream min=1 items=2 grid=full

import torch
import torch.nn as nn
import torch.nn.functional as F

dim = 12288

from torch.utils.cpp_extension import load_inline

DECLARATIONS = """
#include <torch/extension.h>
torch::Tensor fused_0(torch::Tensor t0, torch::Tensor t1, torch::Tensor t2, torch::Tensor t3, torch::Tensor t4);
"""

SOURCE = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_fp16.h>
#include <cmath>
#include <cstdint>
#include <vector>

enum Hint { PLAIN, LDG, STREAM };

template <typename T, int V>
struct alignas(sizeof(T) * V < 16 ? sizeof(T) * V : 16) Pack { T v[V]; };

template <int BYTES> struct Raw;
template <> struct Raw<1> { using type = unsigned char; };
template <> struct Raw<2> { using type = unsigned short; };
template <> struct Raw<4> { using type = unsigned int; };
template <> struct Raw<8> { using type = uint2; };
template <> struct Raw<16> { using type = uint4; };

template <int V, Hint HINT, typename T>
__device__ __forceinline__ Pack<T, V> load(const T* from) {
  using R = typename Raw<alignof(Pack<T, V>)>::type;
  Pack<T, V> pack;
  R* to = reinterpret_cast<R*>(&pack);
  const R* raw = reinterpret_cast<const R*>(from);
#pragma unroll
  for (int k = 0; k < (int)(sizeof(pack) / sizeof(R)); ++k) {
    if constexpr (HINT == PLAIN) to[k] = raw[k];
    if constexpr (HINT == LDG) to[k] = __ldg(raw + k);
    if constexpr (HINT == STREAM) to[k] = __ldcs(raw + k);
  }
  return pack;
}

template <Hint HINT, typename T, int V>
__device__ __forceinline__ void store(T* to, const Pack<T, V>& pack) {
  using R = typename Raw<alignof(Pack<T, V>)>::type;
  const R* from = reinterpret_cast<const R*>(&pack);
  R* raw = reinterpret_cast<R*>(to);
#pragma unroll
  for (int k = 0; k < (int)(sizeof(pack) / sizeof(R)); ++k) {
    if constexpr (HINT == STREAM) __stcs(raw + k, from[k]);
    else raw[k] = from[k];
  }
}

template <typename T>
static bool aligned(const T* pointer, int v) {
  const int bytes = (int)sizeof(T) * v;
  return reinterpret_cast<uintptr_t>(pointer) % (bytes < 16 ? bytes : 16) == 0;
}

__device__ __forceinline__ float sigmoid_(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }
__device__ __forceinline__ float tanh_(float x) { return copysignf(1.0f - __fdividef(2.0f, __expf(2.0f * fminf(fabsf(x), 15.0f)) + 1.0f), x); }

template <int V>
__global__ void __launch_bounds__(512, 1) fused_0_kernel(const float* __restrict__ a0, const float* __restrict__ a1, const float* __restrict__ a2, const float* __restrict__ a3, const float* __restrict__ a4, float* __restrict__ o0) {
  constexpr int PACKS = 201326592 / V;
  const int first = (int)blockIdx.x * 1024 + threadIdx.x;
#pragma unroll
  for (int item = 0; item < 2; ++item) {
    const int pack = first + item * 512;
    if (PACKS % 1024 != 0 && pack >= PACKS) continue;
    const int e = pack * V;
    const int row = e / 12288;
    const int i = e - row * 12288;
    const float* p1 = a1 + 0 + i;
    const float* p3 = a3 + 0 + i;
    Pack<float, V> y0;
    const auto wx0 = load<V, LDG>(a0 + e);
    const auto wx1 = load<V, LDG>(p1);
    const auto wx2 = load<V, LDG>(a2 + e);
    const auto wx3 = load<V, LDG>(p3);
    const auto wx4 = load<V, LDG>(a4 + e);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      const float x0 = wx0.v[j];
      const float x1 = wx1.v[j];
      const float x2 = wx2.v[j];
      const float x3 = wx3.v[j];
      const float x4 = wx4.v[j];
      const float v0 = x0 + x1;
      const float v1 = sigmoid_(v0);
      const float v2 = v0 * v1;
      const float v3 = tanh_(x2);
      const float v4 = v2 * v3;
      const float v5 = v4 * x3;
      const float v6 = x4 + v5;
      y0.v[j] = v6;
    }
    store<STREAM>(o0 + e, y0);
  }
}

template <int V>
static void fused_0_launch(const float* a0, const float* a1, const float* a2, const float* a3, const float* a4, float* o0, cudaStream_t stream) {
  const int64_t blocks = (201326592 / V + 1023) / 1024;
  fused_0_kernel<V><<<(unsigned int)(blocks), 512, 0, stream>>>(a0, a1, a2, a3, a4, o0);
}

torch::Tensor fused_0(torch::Tensor t0, torch::Tensor t1, torch::Tensor t2, torch::Tensor t3, torch::Tensor t4) {
  TORCH_CHECK(t0.is_cuda() && t0.numel() == 201326592, "fused_0: operand 0 is no CUDA tensor of 201326592 elements");
  t0 = t0.contiguous();
  const float* a0 = t0.data_ptr<float>();
  TORCH_CHECK(t1.is_cuda() && t1.numel() == 12288, "fused_0: operand 1 is no CUDA tensor of 12288 elements");
  t1 = t1.contiguous();
  const float* a1 = t1.data_ptr<float>();
  TORCH_CHECK(t2.is_cuda() && t2.numel() == 201326592, "fused_0: operand 2 is no CUDA tensor of 201326592 elements");
  t2 = t2.contiguous();
  const float* a2 = t2.data_ptr<float>();
  TORCH_CHECK(t3.is_cuda() && t3.numel() == 12288, "fused_0: operand 3 is no CUDA tensor of 12288 elements");
  t3 = t3.contiguous();
  const float* a3 = t3.data_ptr<float>();
  TORCH_CHECK(t4.is_cuda() && t4.numel() == 201326592, "fused_0: operand 4 is no CUDA tensor of 201326592 elements");
  t4 = t4.contiguous();
  const float* a4 = t4.data_ptr<float>();
  const c10::cuda::CUDAGuard guard(t0.device());
  auto r0 = torch::empty({16384, 12288}, t0.options().dtype(torch::kFloat32));
  float* o0 = r0.data_ptr<float>();
  const cudaStream_t stream = at::cuda::getCurrentCUDAStream();
  if (aligned(a0, 4) && aligned(a1, 4) && aligned(a2, 4) && aligned(a3, 4) && aligned(a4, 4) && aligned(o0, 4)) {
    fused_0_launch<4>(a0, a1, a2, a3, a4, o0, stream);
  } else {
    fused_0_launch<1>(a0, a1, a2, a3, a4, o0, stream);
  }
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return r0;
}
"""

kernels = load_inline(
    name="tuned_37890a7a8619",
    cpp_sources=[DECLARATIONS],
    cuda_sources=[SOURCE],
    functions=["fused_0"],
    extra_cflags=["-O2"],
    extra_cuda_cflags=["-O3", "-prec-div=false", "-prec-sqrt=false"],
)

class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(dim))
        self.scale = nn.Parameter(torch.randn(dim))

    def forward(self, x, gate, residual):
        t0 = kernels.fused_0(x, self.bias, gate, self.scale, residual)
        return t0
