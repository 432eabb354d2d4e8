"""Blocks add by atomicAdd in any order.

problem: level1_8_middle_sum
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

__global__ void sum_kernel(const float* in, float* out, int length, int features) {
  const int f = blockIdx.x * blockDim.x + threadIdx.x;
  if (f >= features) return;
  in += static_cast<int64_t>(blockIdx.z) * length * features + f;
  float sum = 0.0f;
  for (int64_t l = blockIdx.y; l < length; l += gridDim.y) sum += in[l * features];
  atomicAdd(out + blockIdx.z * features + f, sum);
}

torch::Tensor middle_sum(torch::Tensor x) {
  const int batch = x.size(0), length = x.size(1), features = x.size(2);
  auto y = torch::zeros({batch, 1, features}, x.options());
  const dim3 blocks((features + 255) / 256, 16, batch);
  sum_kernel<<<blocks, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), y.data_ptr<float>(), length, features);
  return y;
}
"""

extension = load_inline(
    name="middle_sum_atomics_gpu",
    cpp_sources="torch::Tensor middle_sum(torch::Tensor x);",
    cuda_sources=cuda,
    functions=["middle_sum"],
)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        assert dim == 1

    def forward(self, x):
        return extension.middle_sum(x)
