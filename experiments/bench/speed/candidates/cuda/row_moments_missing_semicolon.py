# problem: level1_10_row_moments
# expected: build_error
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cuda_runtime.h>
#include <vector>

__inline__ __device__ float warpSum(float v) {
    for (int mask = 16; mask > 0; mask /= 2) v += __shfl_xor_sync(0xffffffff, v, mask);
    return v;
}

// One warp a row, two passes over it.
__global__ void moments_kernel(const float* __restrict__ x, float* __restrict__ var,
                               float* __restrict__ mean, int rows, int cols) {
    const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    if (row >= rows) return;
    const float* p = x + (size_t)row * cols;
    float sum = 0.f;
    for (int c = lane; c < cols; c += 32) sum += p[c];
    const float mu = warpSum(sum) / cols;
    float squares = 0.f;
    for (int c = lane; c < cols; c += 32) {
        const float d = p[c] - mu;
        squares += d * d;
    }
    squares = warpSum(squares);
    if (lane == 0) {
        var[row] = squares / (cols - 1);
        mean[row] = mu;
    }
}

std::vector<torch::Tensor> row_moments(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda(), "x must be on the GPU");
    TORCH_CHECK(x.is_contiguous(), "x must be contiguous");
    const int rows = x.size(0);
    const int cols = x.size(1);
    auto var = torch::empty({rows}, x.options());
    auto mean = torch::empty_like(var)
    const int warps = 8;
    moments_kernel<<<(rows + warps - 1) / warps, warps * 32, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), var.data_ptr<float>(), mean.data_ptr<float>(), rows, cols);
    return {var, mean};
}
"""

moments = load_inline(
    name="row_moments_missing_semicolon",
    cpp_sources="std::vector<torch::Tensor> row_moments(torch::Tensor x);",
    cuda_sources=cuda_source,
    functions=["row_moments"],
    verbose=True,
)


class ModelNew(nn.Module):
    def forward(self, x):
        variance, mean = moments.row_moments(x)
        return variance, mean
