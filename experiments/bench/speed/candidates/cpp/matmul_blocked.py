# problem: level1_14_matmul
# expected: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

matmul_source = """
#include <torch/extension.h>
#include <algorithm>
#include <cstring>

template <int BLOCK_M, int BLOCK_K>
static void matmul_block(const float* A, const float* B, float* C, int64_t M, int64_t N, int64_t K,
                         int64_t m0) {
    const int64_t m1 = std::min<int64_t>(M, m0 + BLOCK_M);
    for (int64_t k0 = 0; k0 < K; k0 += BLOCK_K) {
        const int64_t k1 = std::min<int64_t>(K, k0 + BLOCK_K);
        for (int64_t m = m0; m < m1; ++m) {
            float* __restrict__ c = C + m * N;
            for (int64_t k = k0; k < k1; ++k) {
                const float a = A[m * K + k];
                const float* __restrict__ b = B + k * N;
                for (int64_t n = 0; n < N; ++n) c[n] += a * b[n];
            }
        }
    }
}

torch::Tensor matmul_cpu(torch::Tensor a, torch::Tensor b) {
    TORCH_CHECK(a.dim() == 2 && b.dim() == 2, "expected matrices");
    TORCH_CHECK(a.size(1) == b.size(0), "shapes ", a.sizes(), " and ", b.sizes(), " do not match");
    auto a_ = a.contiguous();
    auto b_ = b.contiguous();
    const int64_t M = a_.size(0), K = a_.size(1), N = b_.size(1);
    auto c = torch::zeros({M, N}, a_.options());
    const float* A = a_.data_ptr<float>();
    const float* B = b_.data_ptr<float>();
    float* C = c.data_ptr<float>();
    #pragma omp parallel for schedule(dynamic)
    for (int64_t m0 = 0; m0 < M; m0 += 16) matmul_block<16, 64>(A, B, C, M, N, K, m0);
    return c;
}
"""

matmul = load_inline(
    name="matmul_blocked",
    cpp_sources=matmul_source,
    functions=["matmul_cpu"],
    verbose=True,
    extra_cflags=["-O3", "-march=native", "-fopenmp"],
    extra_ldflags=["-fopenmp"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.matmul = matmul

    def forward(self, a, b):
        return self.matmul.matmul_cpu(a, b)
