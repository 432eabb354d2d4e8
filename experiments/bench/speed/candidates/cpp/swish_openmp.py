# problem: level1_1_swish
# expected: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

swish_source = """
#include <torch/extension.h>
#include <cmath>
#include <omp.h>

torch::Tensor swish_cpu(torch::Tensor x) {
    TORCH_CHECK(x.is_contiguous(), "x must be contiguous");
    auto out = torch::empty_like(x);
    const float* in = x.data_ptr<float>();
    float* o = out.data_ptr<float>();
    const int64_t n = x.numel();
    #pragma omp parallel for simd schedule(static)
    for (int64_t i = 0; i < n; ++i) {
        o[i] = in[i] / (1.0f + std::exp(-in[i]));
    }
    return out;
}
"""

swish = load_inline(
    name="swish_openmp",
    cpp_sources=swish_source,
    functions=["swish_cpu"],
    verbose=True,
    extra_cflags=["-O3", "-fopenmp", "-march=native"],
    extra_ldflags=["-fopenmp"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.swish = swish

    def forward(self, x):
        return self.swish.swish_cpu(x)
