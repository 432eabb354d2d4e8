"""Direct convolution; the border is left out tap by tap."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <algorithm>

torch::Tensor convolved(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
  const int64_t batch = x.size(0), in = x.size(1), height = x.size(2), width = x.size(3);
  const int64_t out = w.size(0);
  torch::Tensor y = torch::empty({batch, out, height, width}, x.options());
  const float* xs = x.data_ptr<float>();
  const float* ws = w.data_ptr<float>();
  const float* bs = b.data_ptr<float>();
  float* ys = y.data_ptr<float>();
  #pragma omp parallel for collapse(2) schedule(static)
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t o = 0; o < out; ++o) {
      float* to = ys + (n * out + o) * height * width;
      for (int64_t i = 0; i < height * width; ++i) to[i] = bs[o];
      for (int64_t c = 0; c < in; ++c) {
        const float* from = xs + (n * in + c) * height * width;
        const float* taps = ws + (o * in + c) * 9;
        for (int64_t dy = 0; dy < 3; ++dy)
          for (int64_t dx = 0; dx < 3; ++dx) {
            const float tap = taps[dy * 3 + dx];
            const int64_t top = std::max<int64_t>(0, 1 - dy);
            const int64_t bottom = std::min<int64_t>(height, height + 1 - dy);
            const int64_t left = std::max<int64_t>(0, 1 - dx);
            const int64_t right = std::min<int64_t>(width, width + 1 - dx);
            for (int64_t r = top; r < bottom; ++r) {
              const float* line = from + (r + dy - 1) * width + dx - 1;
              for (int64_t q = left; q < right; ++q) to[r * width + q] += tap * line[q];
            }
          }
      }
    }
  return y;
}
"""

kernels = load_inline(
    name="convolved",
    cpp_sources=SOURCE,
    functions=["convolved"],
    extra_cflags=["-O3", "-march=native", "-fopenmp"],
    extra_ldflags=["-fopenmp"],
)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, padding=kernel_size // 2)

    def forward(self, x):
        return kernels.convolved(x, self.conv.weight, self.conv.bias)
