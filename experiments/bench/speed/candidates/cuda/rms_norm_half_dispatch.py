# problem: level1_7_rms_norm
# expected: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

rms_norm_source = """
#include <torch/extension.h>
#include <ATen/AccumulateType.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/Exceptions.h>
#include <cuda_fp16.h>

template <typename acc_t>
__device__ acc_t block_sum(acc_t value) {
  __shared__ acc_t shared[32];
  for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_xor_sync(0xffffffff, value, offset);
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  if (lane == 0) shared[warp] = value;
  __syncthreads();
  value = threadIdx.x < blockDim.x / 32 ? shared[lane] : acc_t(0);
  if (warp == 0) {
    for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_xor_sync(0xffffffff, value, offset);
    if (lane == 0) shared[0] = value;
  }
  __syncthreads();
  return shared[0];
}

template <typename scalar_t>
__global__ void rms_norm_kernel(const scalar_t* __restrict__ x, const scalar_t* __restrict__ weight,
                                scalar_t* __restrict__ out, const int64_t dim, const double eps) {
  using acc_t = at::acc_type<scalar_t, true>;
  const int64_t base = static_cast<int64_t>(blockIdx.x) * dim;
  acc_t squares = 0;
  for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) {
    const acc_t v = static_cast<acc_t>(x[base + i]);
    squares += v * v;
  }
  const acc_t scale = acc_t(1) / sqrt(block_sum(squares) / acc_t(dim) + acc_t(eps));
  for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) {
    out[base + i] = static_cast<scalar_t>(static_cast<acc_t>(x[base + i]) * scale *
                                          static_cast<acc_t>(weight[i]));
  }
}

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  TORCH_CHECK(x.size(-1) == weight.size(0), "weight of ", weight.size(0), " for ", x.size(-1));
  TORCH_CHECK(x.scalar_type() == weight.scalar_type(), "x and weight differ in type");
  at::Tensor out = at::empty_like(x);
  const int64_t dim = x.size(-1);
  const dim3 grid(static_cast<unsigned>(x.numel() / dim));
  const dim3 block(std::min<int64_t>(1024, (dim + 31) / 32 * 32));
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "rms_norm", ([&] {
    rms_norm_kernel<scalar_t><<<grid, block, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<scalar_t>(), weight.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), dim, eps);
  }));
  AT_CUDA_CHECK(cudaGetLastError());
  return out;
}
"""

rms_norm_ext = load_inline(
    name="rms_norm_half_dispatch",
    cpp_sources="at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);",
    cuda_sources=rms_norm_source,
    functions=["rms_norm"],
    verbose=True,
    extra_cuda_cflags=["-O3", "-lineinfo"],
)


class ModelNew(nn.Module):
    def __init__(self, dim: int, eps: float):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return rms_norm_ext.rms_norm(x, self.weight, self.eps)
