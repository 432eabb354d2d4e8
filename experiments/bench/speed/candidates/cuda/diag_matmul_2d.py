# problem: level1_15_diag_matmul
# expected: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = "torch::Tensor diag_matmul(torch::Tensor diagonal, torch::Tensor b);"

cuda_source = """
#include <torch/extension.h>

__global__ void diag_matmul_kernel(const float* d, const float* b, float* out, int n, int m) {
    const int col = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < n && col < m) out[row * m + col] = d[row] * b[row * m + col];
}

torch::Tensor diag_matmul(torch::Tensor diagonal, torch::Tensor b) {
    TORCH_CHECK(diagonal.size(0) == b.size(0), "sizes do not match: ", diagonal.size(0), " and ",
                b.size(0));
    auto out = torch::zeros({b.size(0), b.size(1)}, torch::dtype(torch::kFloat32).device(b.device()));
    dim3 block(32, 8);
    dim3 grid((b.size(1) + block.x - 1) / block.x, (b.size(0) + block.y - 1) / block.y);
    diag_matmul_kernel<<<grid, block>>>(diagonal.data_ptr<float>(), b.data_ptr<float>(),
                                        out.data_ptr<float>(), b.size(0), b.size(1));
    return out;
}
"""

diag = load_inline(
    "diag_matmul_2d", cpp_source, cuda_source, functions=["diag_matmul"], verbose=True
)


class ModelNew(nn.Module):
    def forward(self, diagonal, b):
        return diag.diag_matmul(diagonal, b)
