# problem: level1_15_diag_matmul
# expected: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = """
torch::Tensor diag_matmul(torch::Tensor diagonal, torch::Tensor b) {
  auto out = torch::empty_like(b);
  const int64_t n = b.size(0), m = b.size(1);
  const float* d = diagonal.data_ptr<float>();
  const float* in = b.data_ptr<float>();
  float* o = out.data_ptr<float>();
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < m; j++) o[i * m + j] = d[i] * in[i * m + j];
  return out;
}
"""

diag = load_inline(
    name="diag_matmul_rows", cpp_sources=[source], functions="diag_matmul", extra_cflags=["-O3"]
)


class ModelNew(nn.Module):
    def forward(self, diagonal, b):
        return diag.diag_matmul(diagonal, b)
