# problem: level1_6_layer_norm
# expected: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Optional.h>
#include <cuda_runtime.h>

constexpr int WARP_SIZE = 32;

struct Welford {
  float mean, m2, count;
};

__device__ __forceinline__ Welford combine(Welford a, Welford b) {
  const float count = a.count + b.count;
  if (count == 0.0f) return a;
  const float delta = b.mean - a.mean;
  return {a.mean + delta * b.count / count,
          a.m2 + b.m2 + delta * delta * a.count * b.count / count, count};
}

__device__ __forceinline__ Welford warp_combine(Welford w) {
#pragma unroll
  for (int offset = WARP_SIZE / 2; offset > 0; offset /= 2) {
    Welford other{__shfl_down_sync(0xffffffffu, w.mean, offset),
                  __shfl_down_sync(0xffffffffu, w.m2, offset),
                  __shfl_down_sync(0xffffffffu, w.count, offset)};
    w = combine(w, other);
  }
  return w;
}

template <int BLOCK, bool AFFINE>
__global__ void __launch_bounds__(BLOCK)
    layer_norm_kernel(const float* __restrict__ x, const float* __restrict__ weight,
                      const float* __restrict__ bias, float* __restrict__ y, int dim, float eps) {
  __shared__ Welford partial[BLOCK / WARP_SIZE];
  x += (size_t)blockIdx.x * dim;
  y += (size_t)blockIdx.x * dim;
  Welford w{0.0f, 0.0f, 0.0f};
  for (int i = threadIdx.x; i < dim; i += BLOCK) w = combine(w, {x[i], 0.0f, 1.0f});
  w = warp_combine(w);
  if (threadIdx.x % WARP_SIZE == 0) partial[threadIdx.x / WARP_SIZE] = w;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 1; i < BLOCK / WARP_SIZE; i++) w = combine(w, partial[i]);
    partial[0] = w;
  }
  __syncthreads();
  const float mean = partial[0].mean;
  const float inverse = rsqrtf(partial[0].m2 / dim + eps);
  for (int i = threadIdx.x; i < dim; i += BLOCK) {
    const float v = (x[i] - mean) * inverse;
    y[i] = AFFINE ? v * weight[i] + bias[i] : v;
  }
}

std::vector<torch::Tensor> layer_norm_forward(torch::Tensor x, c10::optional<torch::Tensor> weight,
                                              c10::optional<torch::Tensor> bias, double eps = 1e-5) {
  const c10::cuda::CUDAGuard guard(x.device());
  TORCH_CHECK(weight.has_value() == bias.has_value(), "weight and bias come together");
  x = x.contiguous();
  auto y = torch::empty_like(x);
  const int dim = x.size(-1);
  const auto rows = x.numel() / dim;
  auto stream = c10::cuda::getCurrentCUDAStream(x.get_device());
  if (weight.has_value()) {
    layer_norm_kernel<256, true><<<rows, 256, 0, stream>>>(
        x.data_ptr<float>(), weight->data_ptr<float>(), bias.value().data_ptr<float>(),
        y.data_ptr<float>(), dim, static_cast<float>(eps));
  } else {
    layer_norm_kernel<256, false><<<rows, 256, 0, stream>>>(
        x.data_ptr<float>(), nullptr, nullptr, y.data_ptr<float>(), dim, static_cast<float>(eps));
  }
  C10_CUDA_CHECK(cudaGetLastError());
  return {y};
}
"""

cpp_source = """
#include <torch/extension.h>
#include <vector>
std::vector<torch::Tensor> layer_norm_forward(torch::Tensor x, c10::optional<torch::Tensor> weight,
                                              c10::optional<torch::Tensor> bias, double eps);
"""

ext = load_inline(
    name="layer_norm_optional",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["layer_norm_forward"],
    verbose=True,
    extra_cuda_cflags=["-O3", "-std=c++17"],
)


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.norm = nn.LayerNorm(dim)

    def forward(self, x):
        return ext.layer_norm_forward(x, self.norm.weight, self.norm.bias, self.norm.eps)[0]
