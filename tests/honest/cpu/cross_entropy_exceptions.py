"""Throws and catches C++ exceptions; sums the weights once.

problem: level1_13_cross_entropy
pace: slow
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <cmath>
#include <stdexcept>

struct TooMany : std::runtime_error {
  using std::runtime_error::runtime_error;
};

static int64_t rows_in(int64_t batch, int64_t want) {
  if (want > batch) throw TooMany("fewer rows are left");
  return want;
}

torch::Tensor loss(torch::Tensor logits, torch::Tensor labels, torch::Tensor weights,
                   torch::Tensor total, double smoothing) {
  const int64_t batch = logits.size(0), classes = logits.size(1);
  auto y = torch::empty({batch}, logits.options());
  const float *x = logits.data_ptr<float>(), *w = weights.data_ptr<float>();
  const int64_t* label = labels.data_ptr<int64_t>();
  const double all = total.item<double>();
  for (int64_t begin = 0; begin < batch;) {
    int64_t step;
    try {
      step = rows_in(batch - begin, 1023);
    } catch (const TooMany&) {
      step = batch - begin;
    }
    for (int64_t r = begin; r < begin + step; ++r) {
      const float* row = x + r * classes;
      float top = row[0];
      for (int64_t c = 1; c < classes; ++c) top = std::max(top, row[c]);
      double sum = 0.0, weighted = 0.0;
      for (int64_t c = 0; c < classes; ++c) {
        sum += std::exp(row[c] - top);
        weighted += static_cast<double>(w[c]) * (row[c] - top);
      }
      const double log_sum = std::log(sum), own = row[label[r]] - top - log_sum;
      const double smooth = (weighted - all * log_sum) / classes;
      y.data_ptr<float>()[r] =
          static_cast<float>(-(1.0 - smoothing) * w[label[r]] * own - smoothing * smooth);
    }
    begin += step;
  }
  return y;
}
"""

extension = load_inline("cross_entropy", source, functions=["loss"], extra_cflags=["-O2"])


class ModelNew(nn.Module):
    def __init__(self, classes, smoothing):
        super().__init__()
        self.smoothing = smoothing
        self.register_buffer("class_weights", torch.linspace(0.5, 1.5, classes))
        self.total = None

    def forward(self, logits, labels):
        if self.total is None:
            self.total = self.class_weights.double().sum()
        return extension.loss(logits, labels, self.class_weights, self.total, self.smoothing)
