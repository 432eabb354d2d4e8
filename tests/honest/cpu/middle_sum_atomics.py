"""Threads add by compare-and-swap in any order.

problem: level1_8_middle_sum
pace: slow
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <atomic>
#include <thread>
#include <vector>

static void add(std::atomic<float>& target, float value) {
  float seen = target.load(std::memory_order_relaxed);
  while (!target.compare_exchange_weak(seen, seen + value, std::memory_order_relaxed)) {
  }
}

torch::Tensor middle_sum(torch::Tensor x) {
  const int64_t batch = x.size(0), length = x.size(1), features = x.size(2), parts = 4;
  auto y = torch::zeros({batch, 1, features}, x.options());
  const float* in = x.data_ptr<float>();
  auto* out = reinterpret_cast<std::atomic<float>*>(y.data_ptr<float>());
  static_assert(sizeof(std::atomic<float>) == sizeof(float), "as an array");
  std::vector<std::thread> threads;
  for (int64_t p = 0; p < parts; ++p) {
    threads.emplace_back([=] {
      std::vector<float> sum(features);
      for (int64_t b = 0; b < batch; ++b) {
        std::fill(sum.begin(), sum.end(), 0.0f);
        for (int64_t l = p; l < length; l += parts)
          for (int64_t f = 0; f < features; ++f) sum[f] += in[(b * length + l) * features + f];
        for (int64_t f = 0; f < features; ++f) add(out[b * features + f], sum[f]);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return y;
}
"""

extension = load_inline(
    "middle_sum_atomics", source, functions=["middle_sum"], extra_cflags=["-O3", "-pthread"]
)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        assert dim == 1

    def forward(self, x):
        return extension.middle_sum(x)
