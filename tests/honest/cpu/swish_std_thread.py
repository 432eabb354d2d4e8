"""Starts and joins std::threads at every call.

problem: level1_1_swish
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

torch::Tensor swish(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const float* in = x.data_ptr<float>();
  float* out = y.data_ptr<float>();
  const int64_t n = x.numel();
  const int64_t count = std::max(1u, std::thread::hardware_concurrency());
  const int64_t share = (n + count - 1) / count;
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < count; ++t) {
    threads.emplace_back([=] {
      const int64_t end = std::min(n, (t + 1) * share);
      for (int64_t i = t * share; i < end; ++i) out[i] = in[i] / (1.0f + std::exp(-in[i]));
    });
  }
  for (auto& thread : threads) thread.join();
  return y;
}
"""

extension = load_inline(
    name="swish_std_thread", cpp_sources=source, functions=["swish"], extra_cflags=["-O2"]
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.swish(x)
