# problem: level2_2_linear_gelu_scale_residual
# expected: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

linear_source = """
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <cublas_v2.h>

#define CHECK_CUBLAS(call)                                                        \\
  do {                                                                            \\
    cublasStatus_t status = (call);                                               \\
    TORCH_CHECK(status == CUBLAS_STATUS_SUCCESS, "cuBLAS failed with ", (int)status); \\
  } while (0)

__global__ void epilogue_kernel(const float* __restrict__ x, const float* __restrict__ bias,
                                const float* __restrict__ scale, float* __restrict__ y, int64_t n,
                                int dim) {
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n;
       i += (int64_t)gridDim.x * blockDim.x) {
    const int c = i % dim;
    const float v = y[i] + bias[c];
    y[i] = x[i] + scale[c] * 0.5f * v * (1.0f + erff(v * 0.70710678118f));
  }
}

torch::Tensor linear_gelu(torch::Tensor x, torch::Tensor weight, torch::Tensor bias,
                          torch::Tensor scale) {
  at::cuda::CUDAGuard guard(x.device());
  const int rows = x.size(0), in = x.size(1), out = weight.size(0);
  auto y = torch::empty({rows, out}, x.options());
  cublasHandle_t handle = at::cuda::getCurrentCUDABlasHandle();
  auto stream = at::cuda::getCurrentCUDAStream();
  CHECK_CUBLAS(cublasSetStream(handle, stream));
  const float one = 1.0f, zero = 0.0f;
  CHECK_CUBLAS(cublasSgemm(handle, CUBLAS_OP_T, CUBLAS_OP_N, out, rows, in, &one,
                           weight.data_ptr<float>(), in, x.data_ptr<float>(), in, &zero,
                           y.data_ptr<float>(), out));
  const int threads = 256;
  epilogue_kernel<<<std::min<int64_t>((y.numel() + threads - 1) / threads, 4096), threads, 0, stream>>>(
      x.data_ptr<float>(), bias.data_ptr<float>(), scale.data_ptr<float>(), y.data_ptr<float>(),
      y.numel(), out);
  AT_CUDA_CHECK(cudaGetLastError());
  return y;
}
"""

linear_ext = load_inline(
    name="linear_cublas_epilogue",
    cpp_sources=(
        "torch::Tensor linear_gelu(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, "
        "torch::Tensor scale);"
    ),
    cuda_sources=linear_source,
    functions=["linear_gelu"],
    verbose=True,
    extra_cuda_cflags=["-O3"],
    extra_ldflags=["-lcublas"],
)


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.linear = nn.Linear(dim, dim)
        self.scale = nn.Parameter(torch.full((dim,), 0.1))

    def forward(self, x):
        return linear_ext.linear_gelu(x, self.linear.weight, self.linear.bias, self.scale)
