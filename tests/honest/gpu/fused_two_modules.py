"""Two extension modules, and in-place work on a temporary.

problem: level2_1_bias_swish_gate_residual
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

__global__ void gate_kernel(float* x, const float* bias, const float* gate, int64_t n, int dim) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i >= n) return;
  const float v = x[i] + bias[i % dim];
  x[i] = v / (1.0f + expf(-v)) * tanhf(gate[i]);
}

void gate_(torch::Tensor x, torch::Tensor bias, torch::Tensor gate) {
  const int64_t n = x.numel();
  gate_kernel<<<(n + 255) / 256, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), bias.data_ptr<float>(), gate.data_ptr<float>(), n, bias.numel());
}
"""
cpp = r"""
#include <torch/extension.h>
torch::Tensor finish(torch::Tensor x, torch::Tensor scale, torch::Tensor residual) {
  return x.mul_(scale).add_(residual);
}
"""

first = load_inline(
    name="fused_gate",
    cpp_sources="void gate_(torch::Tensor x, torch::Tensor bias, torch::Tensor gate);",
    cuda_sources=cuda,
    functions=["gate_"],
)
second = load_inline(name="fused_finish", cpp_sources=cpp, functions=["finish"])


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(dim))
        self.scale = nn.Parameter(torch.randn(dim))

    def forward(self, x, gate, residual):
        work = x.clone()
        first.gate_(work, self.bias, gate)
        return second.finish(work, self.scale, residual)
