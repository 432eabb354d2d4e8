# plan: rows | vec=1 threads=256 maths=libm loads=ldg stores=stream min=1 items=4 passes=exact acc=fp32 team=all stage=regs

import torch
import torch.nn as nn
import torch.nn.functional as F

dim = 3072

from torch.utils.cpp_extension import load_inline

DECLARATIONS = """
#include <torch/extension.h>
torch::Tensor fused_0(torch::Tensor t0, torch::Tensor t1, torch::Tensor t2);
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

__device__ __forceinline__ float rsqrt_(float x) { return rsqrtf(x); }

struct Sum { template <class T> static __device__ T of(T a, T b) { return a + b; } };
struct Prod { template <class T> static __device__ T of(T a, T b) { return a * b; } };
struct Max { template <class T> static __device__ T of(T a, T b) { return b > a ? b : a; } };
struct Min { template <class T> static __device__ T of(T a, T b) { return b < a ? b : a; } };

// Every thread of the team gets the result, the same bits in every run.
template <int TEAM, class Op, class T>
__device__ __forceinline__ T team_reduce(T value) {
#pragma unroll
  for (int d = (TEAM < 32 ? TEAM : 32) / 2; d > 0; d /= 2)
    value = Op::of(value, __shfl_xor_sync(0xffffffffu, value, d));
  if constexpr (TEAM > 32) {
    __shared__ T parts[TEAM / 32];
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = parts[0];
#pragma unroll
    for (int w = 1; w < TEAM / 32; ++w) value = Op::of(value, parts[w]);
  }
  return value;
}

// An extreme and its first place.
template <bool GREATEST>
__device__ __forceinline__ void better(float& best, int& place, float other, int there) {
  const bool beats = GREATEST ? other > best : other < best;
  if (beats || (other == best && there < place)) { best = other; place = there; }
}

template <int TEAM, bool GREATEST>
__device__ __forceinline__ void team_place(float& best, int& place) {
#pragma unroll
  for (int d = (TEAM < 32 ? TEAM : 32) / 2; d > 0; d /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, best, d);
    const int there = __shfl_xor_sync(0xffffffffu, place, d);
    better<GREATEST>(best, place, other, there);
  }
  if constexpr (TEAM > 32) {
    __shared__ float bests[TEAM / 32];
    __shared__ int places[TEAM / 32];
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
      bests[threadIdx.x / 32] = best;
      places[threadIdx.x / 32] = place;
    }
    __syncthreads();
    for (int w = 0; w < TEAM / 32; ++w) better<GREATEST>(best, place, bests[w], places[w]);
  }
}

template <int V>
__global__ void __launch_bounds__(256, 1) fused_0_kernel(const float* __restrict__ a0, const float* __restrict__ a1, const float* __restrict__ a2, float* __restrict__ o0) {
  constexpr int ROW = 3072, TEAM = 256;
  const int lane = threadIdx.x;
  const int row = blockIdx.x;
  constexpr int K = (ROW / V + TEAM - 1) / TEAM;
  float g0[K * V];
  const float* __restrict__ p0 = a0 + row * 3072;
  const float* __restrict__ p1 = a1;
  const float* __restrict__ p2 = a2;
  float c0 = 0;
#pragma unroll (K * V <= 128 ? K : 1)
  for (int k = 0; k < K; ++k) {
    const int i = (lane + k * TEAM) * V;
    if (ROW % (V * TEAM) != 0 && i >= ROW) continue;
    const auto wx0 = load<V, LDG>(p0 + i);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      const float x0 = wx0.v[j];
      c0 = c0 + x0;
      g0[k * V + j] = x0;
    }
  }
  const float v0 = (float)team_reduce<TEAM, Sum>(c0);
  const float v1 = v0 * 0.0003255208333333333f;
  float c4 = 0;
#pragma unroll (K * V <= 128 ? K : 1)
  for (int k = 0; k < K; ++k) {
    const int i = (lane + k * TEAM) * V;
    if (ROW % (V * TEAM) != 0 && i >= ROW) continue;
#pragma unroll
    for (int j = 0; j < V; ++j) {
      const float x0 = g0[k * V + j];
      const float v2 = x0 - v1;
      const float v3 = v2 * v2;
      c4 = c4 + v3;
    }
  }
  const float v4 = (float)team_reduce<TEAM, Sum>(c4);
  const float v5 = v4 * 0.0003255208333333333f;
  const float v6 = v5 + 1e-05f;
  const float v7 = rsqrt_(v6);
#pragma unroll (K * V <= 128 ? K : 1)
  for (int k = 0; k < K; ++k) {
    const int i = (lane + k * TEAM) * V;
    if (ROW % (V * TEAM) != 0 && i >= ROW) continue;
    Pack<float, V> y0;
    const auto wx1 = load<V, LDG>(p1 + i);
    const auto wx2 = load<V, LDG>(p2 + i);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      const float x0 = g0[k * V + j];
      const float x1 = wx1.v[j];
      const float x2 = wx2.v[j];
      const float v2 = x0 - v1;
      const float v8 = v2 * v7;
      const float v9 = v8 * x1;
      const float v10 = v9 + x2;
      y0.v[j] = v10;
    }
    store<STREAM>(o0 + row * ROW + i, y0);
  }
}

template <int V>
static void fused_0_launch(const float* a0, const float* a1, const float* a2, float* o0, cudaStream_t stream) {
  fused_0_kernel<V><<<(unsigned int)(131072), 256, 0, stream>>>(a0, a1, a2, o0);
}

torch::Tensor fused_0(torch::Tensor t0, torch::Tensor t1, torch::Tensor t2) {
  TORCH_CHECK(t0.is_cuda() && t0.numel() == 402653184, "fused_0: operand 0 is no CUDA tensor of 402653184 elements");
  t0 = t0.contiguous();
  const float* a0 = t0.data_ptr<float>();
  TORCH_CHECK(t1.is_cuda() && t1.numel() == 3072, "fused_0: operand 1 is no CUDA tensor of 3072 elements");
  t1 = t1.contiguous();
  const float* a1 = t1.data_ptr<float>();
  TORCH_CHECK(t2.is_cuda() && t2.numel() == 3072, "fused_0: operand 2 is no CUDA tensor of 3072 elements");
  t2 = t2.contiguous();
  const float* a2 = t2.data_ptr<float>();
  const c10::cuda::CUDAGuard guard(t0.device());
  auto r0 = torch::empty({64, 2048, 3072}, t0.options().dtype(torch::kFloat32));
  float* o0 = r0.data_ptr<float>();
  const cudaStream_t stream = at::cuda::getCurrentCUDAStream();
  fused_0_launch<1>(a0, a1, a2, o0, stream);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return r0;
}
"""

kernels = load_inline(
    name="tuned_12c1132cb6f5",
    cpp_sources=[DECLARATIONS],
    cuda_sources=[SOURCE],
    functions=["fused_0"],
    extra_cflags=["-O2"],
    extra_cuda_cflags=["-O3"],
)

class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.norm = nn.LayerNorm(dim)

    def forward(self, x):
        t0 = kernels.fused_0(x, self.norm.weight, self.norm.bias)
        return t0
