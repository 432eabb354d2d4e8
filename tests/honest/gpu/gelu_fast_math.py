"""--use_fast_math, with tanh as a quotient of exponentials.

problem: level1_2_gelu_tanh
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

__global__ void gelu_kernel(const float* in, float* out, int64_t n) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i >= n) return;
  const float x = in[i];
  const float u = 1.5957691216057308f * (x + 0.044715f * x * x * x);
  out[i] = x / (1.0f + expf(-u));
}

torch::Tensor gelu(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const int64_t n = x.numel();
  gelu_kernel<<<(n + 511) / 512, 512, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
"""

extension = load_inline(
    name="gelu_fast_math",
    cpp_sources="torch::Tensor gelu(torch::Tensor x);",
    cuda_sources=cuda,
    functions=["gelu"],
    extra_cuda_cflags=["-O3", "--use_fast_math"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.gelu(x)
