"""A rescaled running sum with data-dependent branches.

problem: level2_15_focal_loss
pace: slow
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor focal(torch::Tensor logits, torch::Tensor labels, torch::Tensor balance,
                    double gamma) {
  const int64_t batch = logits.size(0), classes = logits.size(1);
  auto y = torch::empty({batch}, logits.options());
  auto x = logits.accessor<float, 2>();
  auto label = labels.accessor<int64_t, 1>();
  auto weight = balance.accessor<float, 1>();
  auto out = y.accessor<float, 1>();
  #pragma omp parallel for schedule(guided)
  for (int64_t r = 0; r < batch; ++r) {
    float top = x[r][0];
    double sum = 1.0;
    for (int64_t c = 1; c < classes; ++c) {
      if (x[r][c] <= top) {
        sum += std::exp(x[r][c] - top);
      } else {
        sum = sum * std::exp(top - x[r][c]) + 1.0;
        top = x[r][c];
      }
    }
    const double log_p = x[r][label[r]] - top - std::log(sum);
    const double miss = -std::expm1(log_p);
    out[r] = static_cast<float>(-weight[label[r]] * std::pow(miss, gamma) * log_p);
  }
  return y;
}
"""

extension = load_inline("focal_loss", source, functions=["focal"], extra_cflags=["-O3", "-fopenmp"])


class ModelNew(nn.Module):
    def __init__(self, classes, gamma):
        super().__init__()
        self.gamma = gamma
        self.register_buffer("balance", torch.linspace(0.2, 2.0, classes))

    def forward(self, logits, labels):
        return extension.focal(logits, labels, self.balance, self.gamma)
