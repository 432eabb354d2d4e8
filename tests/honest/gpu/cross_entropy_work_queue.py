"""Persistent blocks take rows from an atomic counter.

problem: level1_13_cross_entropy
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__device__ float reduce(float value, bool largest, float* shared) {
  for (int step = 16; step > 0; step /= 2) {
    const float other = __shfl_xor_sync(~0u, value, step);
    value = largest ? fmaxf(value, other) : value + other;
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  value = shared[0];
  for (int warp = 1; warp < blockDim.x / 32; ++warp)
    value = largest ? fmaxf(value, shared[warp]) : value + shared[warp];
  return value;
}

__global__ void loss_kernel(const float* logits, const int64_t* labels, const float* weights,
                            float* out, int* next, int batch, int classes, float smoothing) {
  __shared__ float shared[32];
  __shared__ int row;
  while (true) {
    __syncthreads();
    if (threadIdx.x == 0) row = atomicAdd(next, 1);
    __syncthreads();
    const int r = row;
    if (r >= batch) return;
    const float* x = logits + static_cast<int64_t>(r) * classes;
    float top = -INFINITY, sum = 0.0f, weighted = 0.0f, total = 0.0f;
    for (int c = threadIdx.x; c < classes; c += blockDim.x) top = fmaxf(top, x[c]);
    top = reduce(top, true, shared);
    for (int c = threadIdx.x; c < classes; c += blockDim.x) {
      sum += expf(x[c] - top);
      weighted += weights[c] * (x[c] - top);
      total += weights[c];
    }
    const float log_sum = logf(reduce(sum, false, shared));
    weighted = reduce(weighted, false, shared);
    total = reduce(total, false, shared);
    if (threadIdx.x == 0) {
      const int64_t label = labels[r];
      const float own = x[label] - top - log_sum;
      const float smooth = (weighted - total * log_sum) / classes;
      out[r] = -(1.0f - smoothing) * weights[label] * own - smoothing * smooth;
    }
  }
}

torch::Tensor loss(torch::Tensor logits, torch::Tensor labels, torch::Tensor weights,
                   torch::Tensor next, double smoothing) {
  auto y = torch::empty({logits.size(0)}, logits.options());
  next.zero_();
  const int blocks = 4 * at::cuda::getCurrentDeviceProperties()->multiProcessorCount;
  loss_kernel<<<blocks, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      logits.data_ptr<float>(), labels.data_ptr<int64_t>(), weights.data_ptr<float>(),
      y.data_ptr<float>(), next.data_ptr<int>(), logits.size(0), logits.size(1), smoothing);
  return y;
}
"""

extension = load_inline(
    name="cross_entropy_queue",
    cpp_sources=(
        "torch::Tensor loss(torch::Tensor logits, torch::Tensor labels, torch::Tensor weights,"
        " torch::Tensor next, double smoothing);"
    ),
    cuda_sources=cuda,
    functions=["loss"],
)


class ModelNew(nn.Module):
    def __init__(self, classes, smoothing):
        super().__init__()
        self.smoothing = smoothing
        self.register_buffer("class_weights", torch.linspace(0.5, 1.5, classes))
        self.next = torch.zeros(1, dtype=torch.int32, device="cuda")

    def forward(self, logits, labels):
        return extension.loss(logits, labels, self.class_weights, self.next, self.smoothing)
