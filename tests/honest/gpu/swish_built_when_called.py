"""Compiles in its first call.

problem: level1_1_swish
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

__global__ void swish_kernel(const float* __restrict__ in, float* __restrict__ out, int64_t n) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i < n) {
    out[i] = in[i] * __frcp_rn(1.0f + __expf(-in[i]));
  }
}

torch::Tensor swish_lazily(torch::Tensor x) {
  TORCH_CHECK(x.is_cuda(), "x must be on a GPU");
  auto input = x.contiguous();
  auto y = torch::empty_like(input);
  const int64_t n = input.numel();
  swish_kernel<<<(n + 255) / 256, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      input.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
"""

_extension = None


def _get_extension():
    global _extension
    if _extension is None:
        _extension = load_inline(
            name="swish_built_when_called",
            cpp_sources="torch::Tensor swish_lazily(torch::Tensor x);",
            cuda_sources=cuda,
            functions=["swish_lazily"],
            extra_cuda_cflags=["-O3"],
        )
    return _extension


class ModelNew(nn.Module):
    def forward(self, x):
        return _get_extension().swish_lazily(x)
