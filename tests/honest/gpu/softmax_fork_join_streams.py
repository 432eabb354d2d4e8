"""Launches on side streams that events join.

problem: level1_4_softmax
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

__device__ float reduce(float value, bool largest, float* shared) {
  for (int step = 16; step > 0; step /= 2) {
    const float other = __shfl_xor_sync(~0u, value, step);
    value = largest ? fmaxf(value, other) : value + other;
  }
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  value = shared[0];
  for (int warp = 1; warp < blockDim.x / 32; ++warp)
    value = largest ? fmaxf(value, shared[warp]) : value + shared[warp];
  __syncthreads();
  return value;
}

__global__ void softmax_kernel(const float* in, float* out, int cols) {
  __shared__ float shared[32];
  in += static_cast<int64_t>(blockIdx.x) * cols;
  out += static_cast<int64_t>(blockIdx.x) * cols;
  float top = -INFINITY, sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) top = fmaxf(top, in[c]);
  top = reduce(top, true, shared);
  for (int c = threadIdx.x; c < cols; c += blockDim.x) sum += expf(in[c] - top);
  sum = reduce(sum, false, shared);
  for (int c = threadIdx.x; c < cols; c += blockDim.x) out[c] = expf(in[c] - top) / sum;
}

torch::Tensor softmax(torch::Tensor x) {
  constexpr int kSides = 3;
  static cudaStream_t sides[kSides];
  static cudaEvent_t fork, joins[kSides];
  static const bool made = [] {
    cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
    for (int i = 0; i < kSides; ++i) {
      cudaStreamCreateWithFlags(&sides[i], cudaStreamNonBlocking);
      cudaEventCreateWithFlags(&joins[i], cudaEventDisableTiming);
    }
    return true;
  }();
  TORCH_CHECK(made);
  auto y = torch::empty_like(x);
  const int64_t rows = x.size(0), cols = x.size(1);
  cudaStream_t main = c10::cuda::getCurrentCUDAStream();
  cudaEventRecord(fork, main);
  for (int i = 0; i < kSides; ++i) {
    const int64_t first = i * rows / kSides, last = (i + 1) * rows / kSides;
    cudaStreamWaitEvent(sides[i], fork, 0);
    softmax_kernel<<<last - first, 256, 0, sides[i]>>>(
        x.data_ptr<float>() + first * cols, y.data_ptr<float>() + first * cols, cols);
    cudaEventRecord(joins[i], sides[i]);
  }
  for (auto& join : joins) cudaStreamWaitEvent(main, join, 0);
  return y;
}
"""

extension = load_inline(
    name="softmax_fork_join",
    cpp_sources="torch::Tensor softmax(torch::Tensor x);",
    cuda_sources=cuda,
    functions=["softmax"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.softmax(x)
