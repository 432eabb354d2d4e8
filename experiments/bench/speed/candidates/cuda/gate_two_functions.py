# problem: level2_1_bias_swish_gate_residual
# expected: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAStream.h>

namespace {

__device__ __forceinline__ float sigmoidf(float v) { return 1.0f / (1.0f + __expf(-v)); }

__global__ void bias_swish_kernel(const float* x, const float* bias, float* out, int rows, int dim) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * dim; i += gridDim.x * blockDim.x) {
    const float v = x[i] + bias[i % dim];
    out[i] = v * sigmoidf(v);
  }
}

__global__ void gate_residual_kernel(const float* x, const float* gate, const float* residual,
                                     const float* scale, float* out, int rows, int dim) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * dim; i += gridDim.x * blockDim.x) {
    out[i] = residual[i] + x[i] * tanhf(gate[i]) * scale[i % dim];
  }
}

void check(const torch::Tensor& t, const char* name) {
  TORCH_CHECK(t.is_cuda(), name, " must be a CUDA tensor");
  TORCH_CHECK(t.is_contiguous(), name, " must be contiguous");
  TORCH_CHECK(t.scalar_type() == at::kFloat, name, " must be float32 but is ", t.scalar_type());
}

}  // namespace

torch::Tensor bias_swish(torch::Tensor x, torch::Tensor bias) {
  check(x, "x");
  check(bias, "bias");
  auto out = torch::empty_like(x);
  bias_swish_kernel<<<1024, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), bias.data_ptr<float>(), out.data_ptr<float>(), x.size(0), x.size(1));
  return out;
}

torch::Tensor& gate_residual_(torch::Tensor& x, torch::Tensor gate, torch::Tensor residual,
                              torch::Tensor scale) {
  check(gate, "gate");
  check(residual, "residual");
  gate_residual_kernel<<<1024, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), gate.data_ptr<float>(), residual.data_ptr<float>(),
      scale.data_ptr<float>(), x.data_ptr<float>(), x.size(0), x.size(1));
  return x;
}

torch::Tensor fused(torch::Tensor x, torch::Tensor gate, torch::Tensor residual, torch::Tensor bias,
                    torch::Tensor scale) {
  auto hidden = bias_swish(x, bias);
  return gate_residual_(hidden, gate, residual, scale);
}
"""

cpp_source = """
torch::Tensor bias_swish(torch::Tensor x, torch::Tensor bias);
torch::Tensor fused(torch::Tensor x, torch::Tensor gate, torch::Tensor residual, torch::Tensor bias,
                    torch::Tensor scale);
"""

ops = load_inline(
    name="gate_two_functions",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["bias_swish", "fused"],
    verbose=True,
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(dim))
        self.scale = nn.Parameter(torch.randn(dim))

    def forward(self, x, gate, residual):
        return ops.fused(x, gate, residual, self.bias, self.scale)
