"""A scan by warp shuffles, with another order of sums.

problem: level1_20_cumsum
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

__global__ void scan_kernel(const float* in, float* out, int cols) {
  __shared__ float totals[8];
  in += static_cast<int64_t>(blockIdx.x) * cols;
  out += static_cast<int64_t>(blockIdx.x) * cols;
  float before = 0.0f;
  for (int begin = 0; begin < cols; begin += blockDim.x) {
    const int c = begin + threadIdx.x;
    float sum = c < cols ? in[c] : 0.0f;
    for (int step = 1; step < 32; step *= 2) {
      const float other = __shfl_up_sync(~0u, sum, step);
      if (threadIdx.x % 32 >= step) sum += other;
    }
    if (threadIdx.x % 32 == 31) totals[threadIdx.x / 32] = sum;
    __syncthreads();
    float offset = before;
    for (int warp = 0; warp < threadIdx.x / 32; ++warp) offset += totals[warp];
    for (int warp = 0; warp < blockDim.x / 32; ++warp) before += totals[warp];
    if (c < cols) out[c] = sum + offset;
    __syncthreads();
  }
}

torch::Tensor scan(torch::Tensor x) {
  auto y = torch::empty_like(x);
  scan_kernel<<<x.size(0), 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
"""

extension = load_inline(
    name="cumsum_block_scan",
    cpp_sources="torch::Tensor scan(torch::Tensor x);",
    cuda_sources=cuda,
    functions=["scan"],
)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        assert dim == 1

    def forward(self, x):
        return extension.scan(x)
