"""float4 loads, a grid-stride loop and the fast exponential.

problem: level1_1_swish
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

__device__ __forceinline__ float swish(float x) { return x / (1.0f + __expf(-x)); }

__global__ void swish_kernel(const float4* __restrict__ in, float4* __restrict__ out, int64_t n) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < n; i += step) {
    float4 v = __ldg(in + i);
    v.x = swish(v.x);
    v.y = swish(v.y);
    v.z = swish(v.z);
    v.w = swish(v.w);
    out[i] = v;
  }
}

__global__ void tail_kernel(const float* in, float* out) {
  out[threadIdx.x] = swish(in[threadIdx.x]);
}

torch::Tensor swish_forward(torch::Tensor x) {
  TORCH_CHECK(x.is_contiguous(), "x must be contiguous");
  auto y = torch::empty_like(x);
  swish_kernel<<<2048, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      reinterpret_cast<const float4*>(x.data_ptr<float>()),
      reinterpret_cast<float4*>(y.data_ptr<float>()), x.numel() / 4);
  const int64_t whole = x.numel() / 4 * 4, rest = x.numel() - whole;
  if (rest > 0) {
    tail_kernel<<<1, rest, 0, c10::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>() + whole,
                                                                  y.data_ptr<float>() + whole);
  }
  return y;
}
"""

extension = load_inline(
    name="swish_vectorised",
    cpp_sources="torch::Tensor swish_forward(torch::Tensor x);",
    cuda_sources=cuda,
    functions=["swish_forward"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.swish_forward(x)
