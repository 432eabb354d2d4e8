"""Split-k: threads add to one result in any order.

problem: level1_14_matmul
pace: slow
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <mutex>
#include <thread>
#include <vector>

torch::Tensor matmul(torch::Tensor a, torch::Tensor b) {
  const int64_t m = a.size(0), k = a.size(1), n = b.size(1), parts = 4;
  auto c = torch::zeros({m, n}, a.options());
  const float *pa = a.data_ptr<float>(), *pb = b.data_ptr<float>();
  float* pc = c.data_ptr<float>();
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int64_t p = 0; p < parts; ++p) {
    threads.emplace_back([&, p] {
      std::vector<float> mine(m * n);
      for (int64_t i = 0; i < m; ++i)
        for (int64_t l = p * k / parts; l < (p + 1) * k / parts; ++l) {
          const float factor = pa[i * k + l];
          for (int64_t j = 0; j < n; ++j) mine[i * n + j] += factor * pb[l * n + j];
        }
      std::lock_guard<std::mutex> lock(mutex);
      for (int64_t i = 0; i < m * n; ++i) pc[i] += mine[i];
    });
  }
  for (auto& thread : threads) thread.join();
  return c;
}
"""

extension = load_inline(
    "matmul_split_k",
    source,
    functions=["matmul"],
    extra_cflags=["-O3", "-march=native", "-pthread"],
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return extension.matmul(a, b)
