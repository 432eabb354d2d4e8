"""One thread per column, -lineinfo and a launch check.

problem: level1_11_max_with_index
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <vector>

__global__ void max_kernel(const float* in, float* values, int64_t* indices, int length,
                           int features) {
  const int f = blockIdx.x * blockDim.x + threadIdx.x;
  if (f >= features) return;
  const float* column = in + static_cast<int64_t>(blockIdx.y) * length * features + f;
  float best = column[0];
  int place = 0;
  for (int l = 1; l < length; ++l) {
    const float v = column[static_cast<int64_t>(l) * features];
    if (v > best) {
      best = v;
      place = l;
    }
  }
  values[blockIdx.y * features + f] = best;
  indices[blockIdx.y * features + f] = place;
}

std::vector<torch::Tensor> max_with_index(torch::Tensor x) {
  const int batch = x.size(0), features = x.size(2);
  auto values = torch::empty({batch, features}, x.options());
  auto indices = torch::empty({batch, features}, x.options().dtype(torch::kInt64));
  max_kernel<<<dim3((features + 127) / 128, batch), 128, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), values.data_ptr<float>(), indices.data_ptr<int64_t>(), x.size(1),
      features);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {values, indices};
}
"""

extension = load_inline(
    name="max_with_index",
    cpp_sources="std::vector<torch::Tensor> max_with_index(torch::Tensor x);",
    cuda_sources=cuda,
    functions=["max_with_index"],
    extra_cuda_cflags=["-O3", "-lineinfo", "-Xptxas", "-v"],
)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        assert dim == 1

    def forward(self, x):
        return extension.max_with_index(x)
