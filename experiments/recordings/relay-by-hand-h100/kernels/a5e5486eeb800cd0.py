# plan: as in turn 0, a block of 1024 threads a row; two sets of warp sums, so one barrier a chunk instead of two
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
__global__ void __launch_bounds__(1024) reverse_cumsum_k(const float* __restrict__ x, float* __restrict__ y, int n) {
  __shared__ float warp_sums[2][32];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const float4* in = reinterpret_cast<const float4*>(x + (size_t)blockIdx.x * n);
  float4* out = reinterpret_cast<float4*>(y + (size_t)blockIdx.x * n);
  float carry = 0.f;
  // Thread t holds the t-th float4 from the right end of each chunk.
  int at = n / 4 - 1 - threadIdx.x;
  float4 next = at >= 0 ? in[at] : make_float4(0.f, 0.f, 0.f, 0.f);
  int side = 0;
  for (int begin = 0; begin < n / 4; begin += 1024, side ^= 1) {
    float4 v = next;
    const int here = at;
    at -= 1024;
    if (at >= 0) next = in[at];
    v.z += v.w; v.y += v.z; v.x += v.y;
    float sum = v.x;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
      const float other = __shfl_up_sync(0xffffffffu, sum, d);
      if (lane >= d) sum += other;
    }
    if (lane == 31) warp_sums[side][warp] = sum;
    __syncthreads();
    float total = warp_sums[side][lane];
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
      const float other = __shfl_up_sync(0xffffffffu, total, d);
      if (lane >= d) total += other;
    }
    const float before_warp = warp == 0 ? 0.f : __shfl_sync(0xffffffffu, total, max(warp - 1, 0));
    const float chunk = __shfl_sync(0xffffffffu, total, 31);
    const float before = carry + before_warp + (sum - v.x);
    v.x += before; v.y += before; v.z += before; v.w += before;
    if (here >= 0) out[here] = v;
    carry += chunk;
  }
}

torch::Tensor reverse_cumsum(torch::Tensor x) {
  const int n = x.size(1);
  TORCH_CHECK(n % 4 == 0, "rows of whole float4");
  auto y = torch::empty_like(x);
  reverse_cumsum_k<<<x.size(0), 1024>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
"""

kernels = load_inline(
    name="reverse_cumsum_one_barrier",
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
