# problem: level1_19_max_pool2d
# expected: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

pool_source = """
#include <torch/extension.h>
#include <limits>

torch::Tensor max_pool(torch::Tensor x, int kernel, int stride, int padding) {
  TORCH_CHECK(x.ndimension() == 4, "x must be NCHW");
  const int n = x.size(0), c = x.size(1), h = x.size(2), w = x.size(3);
  const int oh = (h + 2 * padding - kernel) / stride + 1;
  const int ow = (w + 2 * padding - kernel) / stride + 1;
  auto y = torch::full({n, c, oh, ow}, -std::numeric_limits<float>::infinity(), x.options());
  const auto in = x.accessor<float, 4>();
  auto out = y.accessor<float, 4>();
  #pragma omp parallel for collapse(2)
  for (int b = 0; b < n; b++)
    for (int ch = 0; ch < c; ch++)
      for (int i = 0; i < oh; i++)
        for (int j = 0; j < ow; j++)
          for (int p = 0; p < kernel; p++)
            for (int q = 0; q < kernel; q++) {
              const int r = i * stride - padding + p, s = j * stride - padding + q;
              if (r >= 0 && r < h && s >= 0 && s < w)
                out[b][ch][i][j] = std::max(out[b][ch][i][j], in[b][ch][r][s]);
            }
  return y;
}
"""

pool = load_inline(
    name="max_pool_accessors",
    cpp_sources=pool_source,
    functions=["max_pool"],
    verbose=True,
    extra_cflags=["-O3", "-fopenmp"],
)


class ModelNew(nn.Module):
    def __init__(self, kernel_size: int, stride: int, padding: int):
        super().__init__()
        self.sizes = (kernel_size, stride, padding)

    def forward(self, x):
        return pool.max_pool(x.contiguous(), *self.sizes)
