# problem: level1_4_softmax
# expected: build_error
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cuda_runtime.h>
#include <cfloat>

template <typename scalar_t>
__global__ void softmax_kernel(const scalar_t* __restrict__ input, scalar_t* __restrict__ output,
                               int cols) {
    extern __shared__ char smem[];
    scalar_t* shared = reinterpret_cast<scalar_t*>(smem);
    const scalar_t* row = input + static_cast<size_t>(blockIdx.x) * cols;
    scalar_t* out = output + static_cast<size_t>(blockIdx.x) * cols;
    const int tid = threadIdx.x;

    scalar_t maximum = -INFINITY;
    for (int i = tid; i < cols; i += blockDim.x) maximum = max(maximum, row[i]);
    shared[tid] = maximum;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) shared[tid] = max(shared[tid], shared[tid + s]);
        __syncthreads();
    }
    maximum = shared[0];
    __syncthreads();

    scalar_t sum = 0;
    for (int i = tid; i < cols; i += blockDim.x) sum += exp(row[i] - maximum);
    shared[tid] = sum;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) shared[tid] += shared[tid + stride];
        __syncthreads();
    }
    sum = shared[0];
    for (int i = tid; i < cols; i += blockDim.x) out[i] = exp(row[i] - maximum) / sum;
}

torch::Tensor softmax_cuda(torch::Tensor input) {
    TORCH_CHECK(input.is_cuda(), "input must be a CUDA tensor");
    TORCH_CHECK(input.dim() == 2, "input must be 2D");
    auto input_contig = input.contiguous();
    auto output = torch::empty_like(input_contig);
    const int rows = input_contig.size(0);
    const int cols = input_contig.size(1);
    const int threads = 256;
    AT_DISPATCH_FLOATING_TYPES(input_contig.scalar_type(), "softmax_cuda", [&] {
        softmax_kernel<scalar_t><<<rows, threads, threads * sizeof(scalar_t),
                                   at::cuda::getCurrentCUDAStream()>>>(
            input_contig.data_ptr<scalar_t>(), output.data_ptr<scalar_t>(), cols);
    });
    cudaError_t err = cudaGetLastError();
    TORCH_CHECK(err == cudaSuccess, "CUDA kernel failed: ", cudaGetErrorString(err));
    return output;
}
"""

softmax_module = load_inline(
    name="softmax_undeclared",
    cpp_sources="torch::Tensor softmax_cuda(torch::Tensor input);",
    cuda_sources=source,
    functions=["softmax_cuda"],
    verbose=True,
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return softmax_module.softmax_cuda(x)
