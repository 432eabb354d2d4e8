# problem: level2_7_scaled_masked_softmax
# expected: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

masked_source = """
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <limits>

__global__ void masked_softmax_kernel(const float* __restrict__ scores, const float* __restrict__ bias,
                                      const bool* __restrict__ keep, float* __restrict__ out,
                                      int heads, int length, float scale) {
  __shared__ float shared[32];
  __shared__ float result;
  const int64_t row = blockIdx.x;
  const int b = row / ((int64_t)heads * length);
  const int64_t head_row = row % ((int64_t)heads * length);
  scores += row * length;
  out += row * length;
  bias += head_row * length;
  keep += (int64_t)b * length;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;

  float top = -std::numeric_limits<float>::infinity();
  for (int i = threadIdx.x; i < length; i += blockDim.x)
    if (keep[i]) top = fmaxf(top, scores[i] * scale + bias[i]);
  for (int o = 16; o; o >>= 1) top = fmaxf(top, __shfl_xor_sync(~0u, top, o));
  if (!lane) shared[warp] = top;
  __syncthreads();
  if (!threadIdx.x) {
    for (int w = 1; w < warps; w++) top = fmaxf(top, shared[w]);
    result = top;
  }
  __syncthreads();
  top = result;

  float sum = 0.f;
  for (int i = threadIdx.x; i < length; i += blockDim.x)
    if (keep[i]) sum += expf(scores[i] * scale + bias[i] - top);
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  __syncthreads();
  if (!lane) shared[warp] = sum;
  __syncthreads();
  if (!threadIdx.x) {
    for (int w = 1; w < warps; w++) sum += shared[w];
    result = 1.f / sum;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < length; i += blockDim.x)
    out[i] = keep[i] ? expf(scores[i] * scale + bias[i] - top) * result : 0.f;
}

torch::Tensor masked_softmax(torch::Tensor scores, torch::Tensor bias, torch::Tensor keep, double scale) {
  TORCH_CHECK(keep.dtype() == torch::kBool, "keep must be bool, is ", keep.dtype());
  TORCH_CHECK(scores.dim() == 4, "scores must have 4 dimensions");
  auto out = torch::empty_like(scores);
  const int length = scores.size(3), heads = scores.size(1);
  masked_softmax_kernel<<<scores.numel() / length, 128, 0, at::cuda::getCurrentCUDAStream()>>>(
      scores.data_ptr<float>(), bias.data_ptr<float>(), keep.data_ptr<bool>(), out.data_ptr<float>(),
      heads, length, static_cast<float>(scale));
  return out;
}
"""

masked = load_inline(
    name="masked_softmax_bool",
    cpp_sources=(
        "torch::Tensor masked_softmax(torch::Tensor scores, torch::Tensor bias, "
        "torch::Tensor keep, double scale);"
    ),
    cuda_sources=masked_source,
    functions=["masked_softmax"],
    verbose=True,
)


class ModelNew(nn.Module):
    def __init__(self, heads: int, length: int, scale: float):
        super().__init__()
        self.scale = scale
        self.bias = nn.Parameter(torch.randn(heads, length, length))

    def forward(self, scores, keep):
        return masked.masked_softmax(scores.contiguous(), self.bias, keep.contiguous(), self.scale)
