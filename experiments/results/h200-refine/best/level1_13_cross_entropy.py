# plan: rows | vec=4 threads=256 maths=libm loads=plain stores=plain min=1 items=4 passes=fewest acc=fp64 team=32 stage=regs

import torch
import torch.nn as nn
import torch.nn.functional as F

classes = 32000
smoothing = 0.1

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

__device__ __forceinline__ float exp_(float x) { return expf(x); }
__device__ __forceinline__ float log_(float x) { return logf(x); }

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

// The largest value so far, and the sum of exp(x - largest): one pass instead of two.
__device__ __forceinline__ void online(float& top, float& sum, float x) {
  if (x > top) {
    sum = sum * exp_(top - x) + 1.0f;
    top = x;
  } else if (x != -INFINITY) {
    sum += exp_(x - top);
  }
}

__device__ __forceinline__ void online_join(float& top, float& sum, float other, float more) {
  const float least = other > top ? other : top;
  sum = (sum == 0.0f ? 0.0f : sum * exp_(top - least)) +
        (more == 0.0f ? 0.0f : more * exp_(other - least));
  top = least;
}

template <int TEAM>
__device__ __forceinline__ void team_online(float& top, float& sum) {
#pragma unroll
  for (int d = (TEAM < 32 ? TEAM : 32) / 2; d > 0; d /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, top, d);
    const float more = __shfl_xor_sync(0xffffffffu, sum, d);
    online_join(top, sum, other, more);
  }
  if constexpr (TEAM > 32) {
    __shared__ float tops[TEAM / 32];
    __shared__ float sums[TEAM / 32];
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
      tops[threadIdx.x / 32] = top;
      sums[threadIdx.x / 32] = sum;
    }
    __syncthreads();
    top = tops[0];
    sum = sums[0];
    for (int w = 1; w < TEAM / 32; ++w) online_join(top, sum, tops[w], sums[w]);
  }
}

template <int V>
__global__ void __launch_bounds__(256, 1) fused_0_kernel(const int64_t* __restrict__ a0, const float* __restrict__ a1, const float* __restrict__ a2, float* __restrict__ o0) {
  constexpr int ROW = 32000, TEAM = 32;
  const int lane = threadIdx.x % TEAM;
  const int row = (int)blockIdx.x * 8 + threadIdx.x / TEAM;
  const int64_t x0 = a0[row];
  const float* __restrict__ p1 = a1 + row * 32000;
  const float* __restrict__ p2 = a2;
  float c1 = -INFINITY;
  float c4 = 0.0f;
#pragma unroll 4
  for (int i = lane * V; i < ROW; i += TEAM * V) {
    const auto wx1 = load<V, PLAIN>(p1 + i);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      const float x1 = wx1.v[j];
      online(c1, c4, x1);
    }
  }
  team_online<TEAM>(c1, c4);
  const float v1 = c1, v4 = c4;
  const float v5 = log_(v4);
  double c9 = 0;
  double c12 = 0;
#pragma unroll 4
  for (int i = lane * V; i < ROW; i += TEAM * V) {
    const auto wx1 = load<V, PLAIN>(p1 + i);
    const auto wx2 = load<V, PLAIN>(p2 + i);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      const float x1 = wx1.v[j];
      const float x2 = wx2.v[j];
      const bool v0 = ((int64_t)(i + j) == x0);
      const float v2 = x1 - v1;
      const float v6 = v2 - v5;
      const float v7 = v6 * x2;
      const float v8 = v0 ? v7 : 0.0f;
      c9 = c9 + v8;
      c12 = c12 + v7;
    }
  }
  const float v9 = (float)team_reduce<TEAM, Sum>(c9);
  const float v12 = (float)team_reduce<TEAM, Sum>(c12);
  const float v10 = -v9;
  const float v11 = v10 * 0.9f;
  const float v13 = (v12 * (-3.125e-06f));
  const float v14 = v11 + v13;
  if (lane == 0) o0[row] = v14;
}

template <int V>
static void fused_0_launch(const int64_t* a0, const float* a1, const float* a2, float* o0, cudaStream_t stream) {
  fused_0_kernel<V><<<(unsigned int)(2048), 256, 0, stream>>>(a0, a1, a2, o0);
}

torch::Tensor fused_0(torch::Tensor t0, torch::Tensor t1, torch::Tensor t2) {
  TORCH_CHECK(t0.is_cuda() && t0.numel() == 16384, "fused_0: operand 0 is no CUDA tensor of 16384 elements");
  t0 = t0.contiguous();
  const int64_t* a0 = t0.data_ptr<int64_t>();
  TORCH_CHECK(t1.is_cuda() && t1.numel() == 524288000, "fused_0: operand 1 is no CUDA tensor of 524288000 elements");
  t1 = t1.contiguous();
  const float* a1 = t1.data_ptr<float>();
  TORCH_CHECK(t2.is_cuda() && t2.numel() == 32000, "fused_0: operand 2 is no CUDA tensor of 32000 elements");
  t2 = t2.contiguous();
  const float* a2 = t2.data_ptr<float>();
  const c10::cuda::CUDAGuard guard(t0.device());
  auto r0 = torch::empty({16384, 1}, t0.options().dtype(torch::kFloat32));
  float* o0 = r0.data_ptr<float>();
  const cudaStream_t stream = at::cuda::getCurrentCUDAStream();
  if (aligned(a1, 4) && aligned(a2, 4) && aligned(o0, 4)) {
    fused_0_launch<4>(a0, a1, a2, o0, stream);
  } else {
    fused_0_launch<1>(a0, a1, a2, o0, stream);
  }
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return r0;
}
"""

kernels = load_inline(
    name="tuned_15378392df3b",
    cpp_sources=[DECLARATIONS],
    cuda_sources=[SOURCE],
    functions=["fused_0"],
    extra_cflags=["-O2"],
    extra_cuda_cflags=["-O3"],
)

class ModelNew(nn.Module):
    def __init__(self, classes: int, smoothing: float):
        super().__init__()
        self.smoothing = smoothing
        self.register_buffer('class_weights', torch.linspace(0.5, 1.5, classes))

    def forward(self, logits, labels):
        t0 = labels.reshape(16384, 1)
        t1 = self.class_weights.reshape(1, 32000)
        t2 = kernels.fused_0(t0, logits, t1)
        t3 = t2.reshape(16384)
        return t3
