"""Registers an operator with TORCH_LIBRARY and a fake.

problem: level1_1_swish
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp = r"""
#include <torch/library.h>

TORCH_LIBRARY(honest, m) { m.def("swish(Tensor x) -> Tensor"); }
"""
cuda = r"""
#include <ATen/ATen.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

__global__ void swish_kernel(const float* __restrict__ in, float* __restrict__ out, int64_t n) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < n; i += step) {
    const float v = in[i];
    out[i] = v / (1.0f + expf(-v));
  }
}

at::Tensor swish_cuda(const at::Tensor& x) {
  auto input = x.contiguous();
  auto y = at::empty_like(input);
  swish_kernel<<<2048, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      input.data_ptr<float>(), y.data_ptr<float>(), input.numel());
  return y;
}

TORCH_LIBRARY_IMPL(honest, CUDA, m) { m.impl("swish", &swish_cuda); }
"""

path = load_inline(
    name="swish_registered",
    cpp_sources=cpp,
    cuda_sources=cuda,
    extra_cuda_cflags=["-O3"],
    is_python_module=False,
)
assert path in torch.ops.loaded_libraries


@torch.library.register_fake("honest::swish")
def _(x):
    return torch.empty_like(x)


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.ops.honest.swish(x)
