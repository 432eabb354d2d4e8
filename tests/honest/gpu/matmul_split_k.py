"""Split-k with atomicAdd into zeroed memory.

problem: level1_14_matmul
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

constexpr int kTile = 64, kDepth = 16, kEach = 4;

__global__ void matmul_kernel(const float* a, const float* b, float* c, int m, int k, int n) {
  __shared__ float left[kDepth][kTile + 4], right[kDepth][kTile];
  const int top = blockIdx.y * kTile, side = blockIdx.x * kTile;
  const int share = ((k + gridDim.z - 1) / gridDim.z + kDepth - 1) / kDepth * kDepth;
  const int first = blockIdx.z * share, last = min(k, first + share);
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  float sums[kEach][kEach] = {};
  for (int begin = first; begin < last; begin += kDepth) {
    for (int i = threadIdx.x; i < kTile * kDepth; i += blockDim.x) {
      const int row = top + i / kDepth, depth = begin + i % kDepth;
      left[i % kDepth][i / kDepth] = row < m && depth < last ? a[int64_t(row) * k + depth] : 0.0f;
      const int line = begin + i / kTile, column = side + i % kTile;
      const bool inside = line < last && column < n;
      right[i / kTile][i % kTile] = inside ? b[int64_t(line) * n + column] : 0.0f;
    }
    __syncthreads();
    for (int d = 0; d < kDepth; ++d)
      for (int i = 0; i < kEach; ++i)
        for (int j = 0; j < kEach; ++j)
          sums[i][j] += left[d][ty * kEach + i] * right[d][tx * kEach + j];
    __syncthreads();
  }
  for (int i = 0; i < kEach; ++i)
    for (int j = 0; j < kEach; ++j) {
      const int row = top + ty * kEach + i, column = side + tx * kEach + j;
      if (row < m && column < n) atomicAdd(c + int64_t(row) * n + column, sums[i][j]);
    }
}

torch::Tensor matmul(torch::Tensor a, torch::Tensor b) {
  const int m = a.size(0), k = a.size(1), n = b.size(1);
  auto c = torch::zeros({m, n}, a.options());
  const dim3 blocks((n + kTile - 1) / kTile, (m + kTile - 1) / kTile, 4);
  matmul_kernel<<<blocks, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), m, k, n);
  return c;
}
"""

extension = load_inline(
    name="matmul_split_k_gpu",
    cpp_sources="torch::Tensor matmul(torch::Tensor a, torch::Tensor b);",
    cuda_sources=cuda,
    functions=["matmul"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return extension.matmul(a, b)
