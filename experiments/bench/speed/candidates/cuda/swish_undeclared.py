# problem: level1_1_swish
# expected: build_error
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = "torch::Tensor swish(torch::Tensor x);"

cuda_source = """
#include <torch/extension.h>

__global__ void swish_kernel(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] / (1.0f + expf(-x[i]));
}

torch::Tensor swish(torch::Tensor x) {
    auto out = torch::empty_like(x);
    const int n = x.numel();
    swish_kernel<<<(n + threads - 1) / threads, threads>>>(x.data_ptr<float>(),
                                                           out.data_ptr<float>(), n);
    return out;
}
"""

swish = load_inline("swish_undeclared", cpp_source, cuda_source, functions=["swish"])


class ModelNew(nn.Module):
    def forward(self, x):
        return swish.swish(x)
