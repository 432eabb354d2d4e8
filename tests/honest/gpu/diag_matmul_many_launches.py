"""Thousands of small launches in one call.

problem: level1_15_diag_matmul
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

__global__ void scale_row(const float* factor, const float* in, float* out, int64_t count) {
  for (int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    out[i] = *factor * in[i];
}

torch::Tensor scale_rows(torch::Tensor diagonal, torch::Tensor b) {
  auto y = torch::empty_like(b);
  const int64_t cols = b.size(1);
  cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
  for (int64_t r = 0; r < b.size(0); ++r) {
    scale_row<<<(cols + 255) / 256, 256, 0, stream>>>(
        diagonal.data_ptr<float>() + r, b.data_ptr<float>() + r * cols,
        y.data_ptr<float>() + r * cols, cols);
  }
  return y;
}
"""

extension = load_inline(
    name="diag_matmul_launches",
    cpp_sources="torch::Tensor scale_rows(torch::Tensor diagonal, torch::Tensor b);",
    cuda_sources=cuda,
    functions=["scale_rows"],
)


class ModelNew(nn.Module):
    def forward(self, diagonal, b):
        return extension.scale_rows(diagonal, b)
