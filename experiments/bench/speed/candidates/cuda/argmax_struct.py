# problem: level1_9_argmax
# expected: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

argmax_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <limits>

struct Best {
    float value;
    int index;
};

__device__ Best better(Best a, Best b) {
    if (b.value > a.value || (b.value == a.value && b.index < a.index)) return b;
    return a;
}

template <int THREADS>
__global__ void argmax_kernel(const float* x, int64_t* out, int cols) {
    __shared__ Best shared[THREADS];
    Best best{-std::numeric_limits<float>::infinity(), 0x7fffffff};
    for (int c = threadIdx.x; c < cols; c += THREADS)
        best = better(best, Best{x[(size_t)blockIdx.x * cols + c], c});
    shared[threadIdx.x] = best;
    __syncthreads();
    for (int s = THREADS / 2; s > 0; s /= 2) {
        if (threadIdx.x < s) shared[threadIdx.x] = better(shared[threadIdx.x], shared[threadIdx.x + s]);
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = shared[0].index;
}

torch::Tensor argmax_cuda(torch::Tensor x) {
    TORCH_CHECK(x.dtype() == torch::kFloat32, "argmax_cuda takes float32");
    const auto rows = x.size(0);
    auto out = torch::zeros({rows}, x.options().dtype(torch::kInt64));
    argmax_kernel<128><<<rows, 128>>>(x.data_ptr<float>(), out.data_ptr<int64_t>(), x.size(1));
    return out;
}
"""

argmax = load_inline(
    name="argmax_struct",
    cpp_sources="torch::Tensor argmax_cuda(torch::Tensor x);",
    cuda_sources=argmax_source,
    functions=["argmax_cuda"],
    verbose=True,
    extra_cuda_cflags=["-O2", "--expt-relaxed-constexpr"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return argmax.argmax_cuda(x)
