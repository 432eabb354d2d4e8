# problem: level2_1_bias_swish_gate_residual
# expected: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = """
#include <torch/extension.h>
#include <cmath>

static inline float sigmoid(float v) { return 1.0f / (1.0f + std::exp(-v)); }

torch::Tensor bias_swish(torch::Tensor x, torch::Tensor bias) {
    auto out = torch::empty_like(x);
    const int64_t rows = x.size(0), dim = x.size(1);
    auto xa = x.accessor<float, 2>();
    auto ba = bias.accessor<float, 1>();
    auto oa = out.accessor<float, 2>();
    #pragma omp parallel for
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < dim; c++) {
            const float v = xa[r][c] + ba[c];
            oa[r][c] = v * sigmoid(v);
        }
    }
    return out;
}

void gate_residual_(torch::Tensor x, torch::Tensor gate, torch::Tensor residual, torch::Tensor scale) {
    TORCH_CHECK(x.sizes() == gate.sizes(), "gate has another shape");
    const int64_t dim = x.size(1);
    float* xp = x.data_ptr<float>();
    const float* gp = gate.data_ptr<float>();
    const float* rp = residual.data_ptr<float>();
    const float* sp = scale.data_ptr<float>();
    #pragma omp parallel for
    for (int64_t i = 0; i < x.numel(); i++) {
        xp[i] = rp[i] + xp[i] * std::tanh(gp[i]) * sp[i % dim];
    }
}
"""

ops = load_inline(
    name="gate_two_functions_cpu",
    cpp_sources=cpp_source,
    functions=["bias_swish", "gate_residual_"],
    verbose=True,
    extra_cflags=["-O3", "-fopenmp", "-march=native"],
)


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(dim))
        self.scale = nn.Parameter(torch.randn(dim))

    def forward(self, x, gate, residual):
        hidden = ops.bias_swish(x.contiguous(), self.bias)
        ops.gate_residual_(hidden, gate.contiguous(), residual.contiguous(), self.scale)
        return hidden
