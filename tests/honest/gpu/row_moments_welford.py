"""Welford's sums by warp shuffles; returns views of one tensor.

problem: level1_10_row_moments
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

__global__ void moments_kernel(const float* in, float* out, int64_t rows, int cols) {
  const int64_t r = blockIdx.x * static_cast<int64_t>(blockDim.x / 32) + threadIdx.x / 32;
  if (r >= rows) return;
  float count = 0.0f, mean = 0.0f, squares = 0.0f;
  for (int c = threadIdx.x % 32; c < cols; c += 32) {
    const float v = in[r * cols + c], delta = v - mean;
    count += 1.0f;
    mean += delta / count;
    squares += delta * (v - mean);
  }
  for (int step = 16; step > 0; step /= 2) {
    const float other_count = __shfl_down_sync(~0u, count, step);
    const float other_mean = __shfl_down_sync(~0u, mean, step);
    const float other_squares = __shfl_down_sync(~0u, squares, step);
    const float both = count + other_count;
    if (both > 0.0f) {
      const float delta = other_mean - mean;
      mean += delta * other_count / both;
      squares += other_squares + delta * delta * count * other_count / both;
      count = both;
    }
  }
  if (threadIdx.x % 32 == 0) {
    out[r] = squares / (cols - 1);
    out[rows + r] = mean;
  }
}

torch::Tensor moments(torch::Tensor x) {
  const int64_t rows = x.size(0);
  auto y = torch::empty({2, rows}, x.options());
  moments_kernel<<<(rows + 7) / 8, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), y.data_ptr<float>(), rows, x.size(1));
  return y;
}
"""

extension = load_inline(
    name="row_moments_welford",
    cpp_sources="torch::Tensor moments(torch::Tensor x);",
    cuda_sources=cuda,
    functions=["moments"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        variance, mean = extension.moments(x).unbind(0)
        return variance, mean
