"""Times block sizes with CUDA events at the first call.

problem: level1_23_gather_columns
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

__global__ void gather_kernel(const float* in, const int64_t* positions, const float* weight,
                              float* out, int cols, int picks) {
  const int64_t row = blockIdx.y;
  for (int p = blockIdx.x * blockDim.x + threadIdx.x; p < picks; p += gridDim.x * blockDim.x)
    out[row * picks + p] = in[row * cols + positions[row * picks + p]] * weight[p];
}

torch::Tensor gather(torch::Tensor x, torch::Tensor positions, torch::Tensor weight,
                     int64_t threads) {
  const int picks = positions.size(1);
  auto y = torch::empty({x.size(0), picks}, x.options());
  const dim3 blocks((picks + threads - 1) / threads, x.size(0));
  gather_kernel<<<blocks, threads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), positions.data_ptr<int64_t>(), weight.data_ptr<float>(),
      y.data_ptr<float>(), x.size(1), picks);
  return y;
}
"""

extension = load_inline(
    name="gather_autotuned",
    cpp_sources=(
        "torch::Tensor gather(torch::Tensor x, torch::Tensor positions, torch::Tensor weight,"
        " int64_t threads);"
    ),
    cuda_sources=cuda,
    functions=["gather"],
)


class ModelNew(nn.Module):
    def __init__(self, picks):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(picks))
        self.threads = None

    def time(self, x, positions, threads):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        extension.gather(x, positions, self.weight, threads)
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)

    def forward(self, x, positions):
        if self.threads is None:
            choices = (64, 128, 256, 512)
            times = {threads: self.time(x, positions, threads) for threads in choices * 2}
            self.threads = min(times, key=times.get)
        return extension.gather(x, positions, self.weight, self.threads)
