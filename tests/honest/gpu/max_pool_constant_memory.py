"""Copies its arguments to constant memory; uses -Xptxas.

problem: level1_19_max_pool2d
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

__constant__ int shape[7];  // height, width, high, wide, size, stride, padding

__global__ void pool_kernel(const float* __restrict__ in, float* __restrict__ out, int64_t n) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i >= n) return;
  const int wide = shape[3], high = shape[2];
  const int column = i % wide * shape[5] - shape[6];
  const int row = i / wide % high * shape[5] - shape[6];
  const float* plane = in + i / wide / high * shape[0] * shape[1];
  float best = -INFINITY;
  for (int h = max(0, row); h < min(shape[0], row + shape[4]); ++h)
    for (int w = max(0, column); w < min(shape[1], column + shape[4]); ++w)
      best = fmaxf(best, __ldg(plane + h * shape[1] + w));
  out[i] = best;
}

torch::Tensor pool(torch::Tensor x, int64_t size, int64_t stride, int64_t padding) {
  const int height = x.size(2), width = x.size(3);
  const int high = (height + 2 * padding - size) / stride + 1;
  const int wide = (width + 2 * padding - size) / stride + 1;
  auto y = torch::empty({x.size(0), x.size(1), high, wide}, x.options());
  cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
  const int values[7] = {height, width, high, wide, int(size), int(stride), int(padding)};
  cudaMemcpyToSymbolAsync(shape, values, sizeof(values), 0, cudaMemcpyHostToDevice, stream);
  pool_kernel<<<(y.numel() + 255) / 256, 256, 0, stream>>>(x.data_ptr<float>(),
                                                          y.data_ptr<float>(), y.numel());
  return y;
}
"""

extension = load_inline(
    name="max_pool_gpu",
    cpp_sources=(
        "torch::Tensor pool(torch::Tensor x, int64_t size, int64_t stride, int64_t padding);"
    ),
    cuda_sources=cuda,
    functions=["pool"],
    extra_cuda_cflags=["-O3", "-Xptxas", "-dlcm=ca"],
)


class ModelNew(nn.Module):
    def __init__(self, kernel_size, stride, padding):
        super().__init__()
        self.arguments = kernel_size, stride, padding

    def forward(self, x):
        return extension.pool(x, *self.arguments)
