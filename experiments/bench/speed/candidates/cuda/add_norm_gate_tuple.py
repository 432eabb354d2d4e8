# problem: level2_6_add_layer_norm_gate
# expected: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <tuple>

__device__ float reduce(float v, float* shared) {
  const int lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize;
  for (int d = warpSize / 2; d > 0; d /= 2) v += __shfl_down_sync(0xffffffff, v, d);
  __syncthreads();
  if (lane == 0) shared[warp] = v;
  __syncthreads();
  float total = 0.0f;
  for (int w = 0; w < blockDim.x / warpSize; w++) total += shared[w];
  return total;
}

__global__ void add_norm_gate_kernel(const float* __restrict__ x, const float* __restrict__ residual,
                                     const float* __restrict__ gate, const float* __restrict__ weight,
                                     const float* __restrict__ bias, float* __restrict__ out,
                                     float* __restrict__ total, int dim, float eps) {
  extern __shared__ float row[];
  __shared__ float shared[32];
  const size_t base = (size_t)blockIdx.x * dim;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < dim; i += blockDim.x) {
    const float v = x[base + i] + residual[base + i];
    row[i] = v;
    total[base + i] = v;
    sum += v;
  }
  const float mean = reduce(sum, shared) / dim;
  float squares = 0.0f;
  for (int i = threadIdx.x; i < dim; i += blockDim.x) squares += (row[i] - mean) * (row[i] - mean);
  const float inverse = rsqrtf(reduce(squares, shared) / dim + eps);
  for (int i = threadIdx.x; i < dim; i += blockDim.x) {
    const float normal = (row[i] - mean) * inverse * weight[i] + bias[i];
    out[base + i] = normal / (1.0f + expf(-gate[base + i]));
  }
}

std::tuple<torch::Tensor, torch::Tensor> add_norm_gate(
    const torch::Tensor& x, const torch::Tensor& residual, const torch::Tensor& gate,
    const torch::Tensor& weight, const torch::Tensor& bias, const double eps) {
  TORCH_CHECK(x.sizes() == residual.sizes() && x.sizes() == gate.sizes(), "shapes differ: ",
              x.sizes(), ", ", residual.sizes(), ", ", gate.sizes());
  c10::cuda::CUDAGuard device_guard{x.device()};
  auto out = torch::empty_like(x), total = torch::empty_like(x);
  const int dim = static_cast<int>(x.size(1));
  const size_t bytes = dim * sizeof(float);
  if (bytes > 48 * 1024) {
    C10_CUDA_CHECK(cudaFuncSetAttribute(add_norm_gate_kernel,
                                        cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  }
  add_norm_gate_kernel<<<x.size(0), 256, bytes, at::cuda::getCurrentCUDAStream()>>>(
      x.const_data_ptr<float>(), residual.const_data_ptr<float>(), gate.const_data_ptr<float>(),
      weight.const_data_ptr<float>(), bias.const_data_ptr<float>(), out.mutable_data_ptr<float>(),
      total.mutable_data_ptr<float>(), dim, static_cast<float>(eps));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return std::make_tuple(out, total);
}
"""

cpp_source = """
#include <tuple>
std::tuple<torch::Tensor, torch::Tensor> add_norm_gate(
    const torch::Tensor& x, const torch::Tensor& residual, const torch::Tensor& gate,
    const torch::Tensor& weight, const torch::Tensor& bias, const double eps);
"""

fused = load_inline(
    name="add_norm_gate_tuple",
    cpp_sources=[cpp_source],
    cuda_sources=[cuda_source],
    functions={"add_norm_gate": "Residual sum, layer norm and gate"},
    verbose=True,
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.norm = nn.LayerNorm(dim)

    def forward(self, x, residual, gate):
        return fused.add_norm_gate(
            x, residual, gate, self.norm.weight, self.norm.bias, self.norm.eps
        )
