# problem: level1_8_middle_sum
# expected: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

sum_source = """
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

// First kernel: each block sums a chunk of the middle dimension for 128 features.
__global__ void partial_sums(const float* __restrict__ x, float* __restrict__ partial, int length,
                             int features, int chunk) {
    const int f = blockIdx.x * blockDim.x + threadIdx.x;
    const int b = blockIdx.z;
    if (f >= features) return;
    const int begin = blockIdx.y * chunk;
    const int end = min(length, begin + chunk);
    const float* column = x + (size_t)b * length * features + f;
    float sum = 0.0f;
    for (int i = begin; i < end; i++) sum += column[(size_t)i * features];
    partial[((size_t)b * gridDim.y + blockIdx.y) * features + f] = sum;
}

// Second kernel: adds the chunks up.
__global__ void final_sums(const float* __restrict__ partial, float* __restrict__ out, int chunks,
                           int features) {
    const int f = blockIdx.x * blockDim.x + threadIdx.x;
    if (f >= features) return;
    float sum = 0.0f;
    for (int c = 0; c < chunks; c++) sum += partial[((size_t)blockIdx.y * chunks + c) * features + f];
    out[(size_t)blockIdx.y * features + f] = sum;
}

torch::Tensor middle_sum(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda() && x.dim() == 3, "expected a CUDA tensor of 3 dimensions");
    x = x.contiguous();
    const int batch = x.size(0), length = x.size(1), features = x.size(2);
    const int chunk = 64;
    const int chunks = (length + chunk - 1) / chunk;
    auto options = torch::TensorOptions().dtype(x.dtype()).device(x.device());
    auto partial = torch::empty({batch, chunks, features}, options);
    auto out = torch::empty({batch, 1, features}, options);
    const dim3 threads(128);
    const int tiles = (features + 127) / 128;
    auto stream = at::cuda::getCurrentCUDAStream();
    partial_sums<<<dim3(tiles, chunks, batch), threads, 0, stream.stream()>>>(
        x.data_ptr<float>(), partial.data_ptr<float>(), length, features, chunk);
    final_sums<<<dim3(tiles, batch), threads, 0, stream.stream()>>>(
        partial.data_ptr<float>(), out.data_ptr<float>(), chunks, features);
    return out;
}
"""

middle = load_inline(
    name="middle_sum_two_kernels",
    cpp_sources="torch::Tensor middle_sum(torch::Tensor x);",
    cuda_sources=sum_source,
    functions=["middle_sum"],
    verbose=False,
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        assert dim == 1

    def forward(self, x):
        return middle.middle_sum(x)
