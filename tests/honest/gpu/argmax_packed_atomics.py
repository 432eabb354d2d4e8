"""atomicMax on packed values and indices, in kept scratch.

problem: level1_9_argmax
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

__device__ unsigned long long packed(float value, unsigned column) {
  unsigned bits = __float_as_uint(value);
  bits = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return static_cast<unsigned long long>(bits) << 32 | (0xffffffffu - column);
}

__global__ void find(const float* in, unsigned long long* best, int cols) {
  const float* row = in + static_cast<int64_t>(blockIdx.y) * cols;
  unsigned long long mine = 0;
  for (int c = blockIdx.x * blockDim.x + threadIdx.x; c < cols; c += gridDim.x * blockDim.x)
    mine = max(mine, packed(row[c], c));
  for (int step = 16; step > 0; step /= 2) mine = max(mine, __shfl_xor_sync(~0u, mine, step));
  if (threadIdx.x % 32 == 0) atomicMax(best + blockIdx.y, mine);
}

__global__ void unpack(const unsigned long long* best, int64_t* out, int rows) {
  const int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows) out[r] = 0xffffffffu - static_cast<unsigned>(best[r]);
}

torch::Tensor argmax(torch::Tensor x) {
  static unsigned long long* best = nullptr;
  static int64_t room = 0;
  const int64_t rows = x.size(0);
  if (room < rows) {
    cudaFree(best);
    cudaMalloc(&best, rows * sizeof(*best));
    room = rows;
  }
  auto y = torch::empty({rows}, x.options().dtype(torch::kLong));
  cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
  cudaMemsetAsync(best, 0, rows * sizeof(*best), stream);
  find<<<dim3(4, rows), 256, 0, stream>>>(x.data_ptr<float>(), best, x.size(1));
  unpack<<<(rows + 255) / 256, 256, 0, stream>>>(best, y.data_ptr<int64_t>(), rows);
  return y;
}
"""

extension = load_inline(
    name="argmax_packed",
    cpp_sources="torch::Tensor argmax(torch::Tensor x);",
    cuda_sources=cuda,
    functions=["argmax"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.argmax(x)
