"""CUDA text that every kernel stands on: vector loads and stores, and reductions over a team.

A team is the threads that share a row: a part of a warp, a warp, or a whole block.
"""

from __future__ import annotations

INCLUDES = """\
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_fp16.h>
#include <cmath>
#include <cstdint>
#include <vector>
"""

PACKS = """\
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
"""

REDUCTIONS = """\
struct Sum { template <class T> static __device__ T of(T a, T b) { return a + b; } };
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
"""

ONLINE = """\
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
"""
