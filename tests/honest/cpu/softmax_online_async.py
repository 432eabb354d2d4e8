"""std::async tasks and a one-pass softmax.

problem: level1_4_softmax
pace: slow
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <cmath>
#include <future>
#include <vector>

static int64_t part(const float* in, float* out, int64_t first, int64_t last, int64_t cols) {
  for (int64_t r = first; r < last; ++r) {
    const float* row = in + r * cols;
    float top = row[0], sum = 1.0f;
    for (int64_t c = 1; c < cols; ++c) {
      if (row[c] > top) {
        sum = sum * std::exp(top - row[c]) + 1.0f;
        top = row[c];
      } else {
        sum += std::exp(row[c] - top);
      }
    }
    for (int64_t c = 0; c < cols; ++c) out[r * cols + c] = std::exp(row[c] - top) / sum;
  }
  return last - first;
}

torch::Tensor softmax(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const int64_t rows = x.size(0), cols = x.size(1), tasks = 6;
  std::vector<std::future<int64_t>> parts;
  for (int64_t t = 0; t < tasks; ++t) {
    parts.push_back(std::async(std::launch::async, part, x.data_ptr<float>(), y.data_ptr<float>(),
                               t * rows / tasks, (t + 1) * rows / tasks, cols));
  }
  int64_t done = 0;
  for (auto& each : parts) done += each.get();
  TORCH_CHECK(done == rows, "only ", done, " rows were done");
  return y;
}
"""

extension = load_inline(
    name="softmax_async", cpp_sources=source, functions=["softmax"], extra_cflags=["-O2 -pthread"]
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.softmax(x)
