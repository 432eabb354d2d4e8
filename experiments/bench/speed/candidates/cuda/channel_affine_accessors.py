# problem: level1_3_channel_affine
# expected: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_src = """
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <vector>

template <typename scalar_t>
__global__ void channel_affine_kernel(
    const torch::PackedTensorAccessor32<scalar_t, 4, torch::RestrictPtrTraits> x,
    const torch::PackedTensorAccessor32<scalar_t, 1, torch::RestrictPtrTraits> gain,
    const torch::PackedTensorAccessor32<scalar_t, 1, torch::RestrictPtrTraits> shift,
    torch::PackedTensorAccessor32<scalar_t, 4, torch::RestrictPtrTraits> out) {
  const int n = blockIdx.z;
  const int c = blockIdx.y;
  const int plane = x.size(2) * x.size(3);
  const int p = blockIdx.x * blockDim.x + threadIdx.x;
  if (p < plane) {
    const int h = p / x.size(3);
    const int w = p % x.size(3);
    out[n][c][h][w] = x[n][c][h][w] * gain[c] + shift[c];
  }
}

torch::Tensor channel_affine_cuda(torch::Tensor x, torch::Tensor gain, torch::Tensor shift) {
  TORCH_CHECK(x.dim() == 4, "x must be (batch, channels, height, width), got ", x.sizes());
  TORCH_CHECK(gain.size(0) == x.size(1), "one gain per channel");
  auto out = torch::empty(x.sizes(), x.options());
  const int threads = 256;
  const dim3 blocks((x.size(2) * x.size(3) + threads - 1) / threads, x.size(1), x.size(0));
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "channel_affine_cuda", ([&] {
    channel_affine_kernel<scalar_t><<<blocks, threads>>>(
        x.packed_accessor32<scalar_t, 4, torch::RestrictPtrTraits>(),
        gain.packed_accessor32<scalar_t, 1, torch::RestrictPtrTraits>(),
        shift.packed_accessor32<scalar_t, 1, torch::RestrictPtrTraits>(),
        out.packed_accessor32<scalar_t, 4, torch::RestrictPtrTraits>());
  }));
  return out;
}
"""

cpp_src = """
torch::Tensor channel_affine_cuda(torch::Tensor x, torch::Tensor gain, torch::Tensor shift);
"""

module = load_inline(
    name="channel_affine_accessors",
    cpp_sources=[cpp_src],
    cuda_sources=[cuda_src],
    functions=["channel_affine_cuda"],
    verbose=True,
)


class ModelNew(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.gain = nn.Parameter(torch.randn(channels))
        self.shift = nn.Parameter(torch.randn(channels))

    def forward(self, x):
        return module.channel_affine_cuda(x, self.gain, self.shift)
