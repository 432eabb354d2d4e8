# plan: rows | vec=2 threads=256 maths=flags loads=plain stores=plain min=1 items=1 passes=exact acc=fp64 team=all stage=smem

import torch
import torch.nn as nn
import torch.nn.functional as F

dim = 4096

from torch.utils.cpp_extension import load_inline

DECLARATIONS = """
#include <torch/extension.h>
std::vector<torch::Tensor> fused_0(torch::Tensor t0, torch::Tensor t1, torch::Tensor t2, torch::Tensor t3, torch::Tensor t4);
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
__device__ __forceinline__ float sigmoid_(float x) { return 1.0f / (1.0f + expf(-x)); }

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
__global__ void __launch_bounds__(256, 1) fused_0_kernel(const float* __restrict__ a0, const float* __restrict__ a1, const float* __restrict__ a2, const float* __restrict__ a3, const float* __restrict__ a4, float* __restrict__ o0, float* __restrict__ o1) {
  constexpr int ROW = 4096, TEAM = 256;
  const int lane = threadIdx.x;
  const int row = blockIdx.x;
  extern __shared__ __align__(16) unsigned char raw[];
  float* pool = reinterpret_cast<float*>(raw);
  float* g0 = pool + 0;
  const float* __restrict__ p0 = a0 + row * 4096;
  const float* __restrict__ p1 = a1 + row * 4096;
  const float* __restrict__ p2 = a2;
  const float* __restrict__ p3 = a3;
  const float* __restrict__ p4 = a4 + row * 4096;
  double c1 = 0;
#pragma unroll 1
  for (int i = lane * V; i < ROW; i += TEAM * V) {
    const auto wx0 = load<V, PLAIN>(p0 + i);
    const auto wx1 = load<V, PLAIN>(p1 + i);
    Pack<float, V> kv0;
#pragma unroll
    for (int j = 0; j < V; ++j) {
      const float x0 = wx0.v[j];
      const float x1 = wx1.v[j];
      const float v0 = x0 + x1;
      c1 = c1 + v0;
      kv0.v[j] = v0;
    }
    store<PLAIN>((g0 + i), kv0);
  }
  const float v1 = (float)team_reduce<TEAM, Sum>(c1);
  const float v2 = v1 * 0.000244140625f;
  double c5 = 0;
#pragma unroll 1
  for (int i = lane * V; i < ROW; i += TEAM * V) {
    const auto wv0 = load<V, PLAIN>((g0 + i));
#pragma unroll
    for (int j = 0; j < V; ++j) {
      const float v0 = wv0.v[j];
      const float v3 = v0 - v2;
      const float v4 = v3 * v3;
      c5 = c5 + v4;
    }
  }
  const float v5 = (float)team_reduce<TEAM, Sum>(c5);
  const float v6 = v5 * 0.000244140625f;
  const float v7 = v6 + 1e-05f;
  const float v8 = rsqrt_(v7);
#pragma unroll 1
  for (int i = lane * V; i < ROW; i += TEAM * V) {
    Pack<float, V> y0;
    Pack<float, V> y1;
    const auto wx2 = load<V, PLAIN>(p2 + i);
    const auto wx3 = load<V, PLAIN>(p3 + i);
    const auto wx4 = load<V, PLAIN>(p4 + i);
    const auto wv0 = load<V, PLAIN>((g0 + i));
#pragma unroll
    for (int j = 0; j < V; ++j) {
      const float x2 = wx2.v[j];
      const float x3 = wx3.v[j];
      const float x4 = wx4.v[j];
      const float v0 = wv0.v[j];
      const float v3 = v0 - v2;
      const float v9 = v3 * v8;
      const float v10 = v9 * x2;
      const float v11 = v10 + x3;
      const float v12 = sigmoid_(x4);
      const float v13 = v11 * v12;
      y0.v[j] = v0;
      y1.v[j] = v13;
    }
    store<PLAIN>(o0 + row * ROW + i, y0);
    store<PLAIN>(o1 + row * ROW + i, y1);
  }
}

template <int V>
static void fused_0_launch(const float* a0, const float* a1, const float* a2, const float* a3, const float* a4, float* o0, float* o1, cudaStream_t stream) {
  C10_CUDA_CHECK(cudaFuncSetAttribute(fused_0_kernel<V>, cudaFuncAttributeMaxDynamicSharedMemorySize, 16384));
  fused_0_kernel<V><<<(unsigned int)(32768), 256, 16384, stream>>>(a0, a1, a2, a3, a4, o0, o1);
}

std::vector<torch::Tensor> fused_0(torch::Tensor t0, torch::Tensor t1, torch::Tensor t2, torch::Tensor t3, torch::Tensor t4) {
  TORCH_CHECK(t0.is_cuda() && t0.numel() == 134217728, "fused_0: operand 0 is no CUDA tensor of 134217728 elements");
  t0 = t0.contiguous();
  const float* a0 = t0.data_ptr<float>();
  TORCH_CHECK(t1.is_cuda() && t1.numel() == 134217728, "fused_0: operand 1 is no CUDA tensor of 134217728 elements");
  t1 = t1.contiguous();
  const float* a1 = t1.data_ptr<float>();
  TORCH_CHECK(t2.is_cuda() && t2.numel() == 4096, "fused_0: operand 2 is no CUDA tensor of 4096 elements");
  t2 = t2.contiguous();
  const float* a2 = t2.data_ptr<float>();
  TORCH_CHECK(t3.is_cuda() && t3.numel() == 4096, "fused_0: operand 3 is no CUDA tensor of 4096 elements");
  t3 = t3.contiguous();
  const float* a3 = t3.data_ptr<float>();
  TORCH_CHECK(t4.is_cuda() && t4.numel() == 134217728, "fused_0: operand 4 is no CUDA tensor of 134217728 elements");
  t4 = t4.contiguous();
  const float* a4 = t4.data_ptr<float>();
  const c10::cuda::CUDAGuard guard(t0.device());
  auto r0 = torch::empty({32768, 4096}, t0.options().dtype(torch::kFloat32));
  float* o0 = r0.data_ptr<float>();
  auto r1 = torch::empty({32768, 4096}, t0.options().dtype(torch::kFloat32));
  float* o1 = r1.data_ptr<float>();
  const cudaStream_t stream = at::cuda::getCurrentCUDAStream();
  if (aligned(a0, 2) && aligned(a1, 2) && aligned(a2, 2) && aligned(a3, 2) && aligned(a4, 2) && aligned(o0, 2) && aligned(o1, 2)) {
    fused_0_launch<2>(a0, a1, a2, a3, a4, o0, o1, stream);
  } else {
    fused_0_launch<1>(a0, a1, a2, a3, a4, o0, o1, stream);
  }
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {r0, r1};
}
"""

kernels = load_inline(
    name="tuned_861b1a42bfcb",
    cpp_sources=[DECLARATIONS],
    cuda_sources=[SOURCE],
    functions=["fused_0"],
    extra_cflags=["-O2"],
    extra_cuda_cflags=["-O3", "--use_fast_math"],
)

class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.norm = nn.LayerNorm(dim)

    def forward(self, x, residual, gate):
        t0, t1 = kernels.fused_0(x, residual, self.norm.weight, self.norm.bias, gate)
        return (t1, t0)
