# plan: a warp owns a row, so nothing waits at a barrier: 1024 values a step, the next step's loads under way
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
__global__ void __launch_bounds__(128) reverse_cumsum_k(const float* __restrict__ x, float* __restrict__ y, int n, int rows) {
  constexpr int V = 4;
  const int lane = threadIdx.x & 31, row = blockIdx.x * 4 + (threadIdx.x >> 5);
  if (row >= rows) return;
  const float4* in = reinterpret_cast<const float4*>(x + (size_t)row * n);
  float4* out = reinterpret_cast<float4*>(y + (size_t)row * n);
  float carry = 0.f;
  float4 next[V];
  // Lane l holds the l-th float4 from the right of each 32.
  int at = n / 4 - 1 - lane;
#pragma unroll
  for (int i = 0; i < V; ++i) next[i] = __ldcs(in + at - 32 * i);
  for (int left = n / 128; left > 0; left -= V) {
    float4 v[V];
    const int here = at;
    at -= 32 * V;
#pragma unroll
    for (int i = 0; i < V; ++i) v[i] = next[i];
    if (left > V) {
#pragma unroll
      for (int i = 0; i < V; ++i) next[i] = __ldcs(in + at - 32 * i);
    }
    float sum[V];
#pragma unroll
    for (int i = 0; i < V; ++i) {
      v[i].z += v[i].w; v[i].y += v[i].z; v[i].x += v[i].y;
      sum[i] = v[i].x;
    }
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
#pragma unroll
      for (int i = 0; i < V; ++i) {
        const float other = __shfl_up_sync(0xffffffffu, sum[i], d);
        if (lane >= d) sum[i] += other;
      }
    }
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const float before = carry + (sum[i] - v[i].x);
      carry += __shfl_sync(0xffffffffu, sum[i], 31);
      v[i].x += before; v[i].y += before; v[i].z += before; v[i].w += before;
      __stcs(out + here - 32 * i, v[i]);
    }
  }
}

torch::Tensor reverse_cumsum(torch::Tensor x) {
  const int n = x.size(1), rows = x.size(0);
  TORCH_CHECK(n % 512 == 0, "rows of whole steps");
  auto y = torch::empty_like(x);
  reverse_cumsum_k<<<(rows + 3) / 4, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n, rows);
  return y;
}
"""

kernels = load_inline(
    name="reverse_cumsum_warps",
    cpp_sources="torch::Tensor reverse_cumsum(torch::Tensor x);",
    cuda_sources=CUDA_SOURCE,
    functions=["reverse_cumsum"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return kernels.reverse_cumsum(x.contiguous())
