"""Asks for nearly all shared memory, else uses global memory.

problem: level1_5_log_softmax
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

__device__ float reduce(float value, bool largest, float* shared) {
  shared[threadIdx.x] = value;
  __syncthreads();
  for (int step = blockDim.x / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) {
      const float other = shared[threadIdx.x + step];
      const float own = shared[threadIdx.x];
      shared[threadIdx.x] = largest ? fmaxf(own, other) : own + other;
    }
    __syncthreads();
  }
  value = shared[0];
  __syncthreads();
  return value;
}

template <bool kept>
__global__ void log_softmax_kernel(const float* in, float* out, int cols) {
  extern __shared__ float row[];
  __shared__ float shared[1024];
  in += static_cast<int64_t>(blockIdx.x) * cols;
  out += static_cast<int64_t>(blockIdx.x) * cols;
  float top = -INFINITY, sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) {
    const float v = in[c];
    if (kept) row[c] = v;
    top = fmaxf(top, v);
  }
  top = reduce(top, true, shared);
  const float* from = kept ? row : in;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) sum += expf(from[c] - top);
  const float shift = logf(reduce(sum, false, shared));
  for (int c = threadIdx.x; c < cols; c += blockDim.x) out[c] = from[c] - top - shift;
}

torch::Tensor log_softmax(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const int cols = x.size(1), bytes = cols * sizeof(float);
  static const bool granted =
      cudaFuncSetAttribute(log_softmax_kernel<true>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           bytes) == cudaSuccess;
  if (!granted) cudaGetLastError();
  cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
  const float* in = x.data_ptr<float>();
  float* out = y.data_ptr<float>();
  if (granted) {
    log_softmax_kernel<true><<<x.size(0), 1024, bytes, stream>>>(in, out, cols);
  } else {
    log_softmax_kernel<false><<<x.size(0), 1024, 0, stream>>>(in, out, cols);
  }
  return y;
}
"""

extension = load_inline(
    name="log_softmax_shared",
    cpp_sources="torch::Tensor log_softmax(torch::Tensor x);",
    cuda_sources=cuda,
    functions=["log_softmax"],
    extra_cuda_cflags=["-O3", "-lineinfo"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.log_softmax(x)
