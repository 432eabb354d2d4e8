"""How often each class occurs and the sum of its weights; threads share the counters."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <vector>

std::vector<torch::Tensor> counted(torch::Tensor labels, torch::Tensor weights, int64_t classes) {
  const int64_t count = labels.numel();
  torch::Tensor counts = torch::zeros({classes}, labels.options());
  torch::Tensor sums = torch::zeros({classes}, weights.options().dtype(torch::kFloat64));
  const int64_t* ls = labels.data_ptr<int64_t>();
  const float* ws = weights.data_ptr<float>();
  int64_t* cs = counts.data_ptr<int64_t>();
  double* ss = sums.data_ptr<double>();
  #pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < count; ++i) {
    #pragma omp atomic
    cs[ls[i]] += 1;
    #pragma omp atomic
    ss[ls[i]] += ws[i];
  }
  return {counts, sums.to(torch::kFloat32)};
}
"""

kernels = load_inline(
    name="counted",
    cpp_sources=SOURCE,
    functions=["counted"],
    extra_cflags=["-O3", "-march=native", "-fopenmp"],
    extra_ldflags=["-fopenmp"],
)


class ModelNew(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.classes = classes

    def forward(self, labels, weights):
        counts, sums = kernels.counted(labels, weights, self.classes)
        return counts, sums


class Model(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.classes = classes

    def forward(self, labels, weights):
        sums = torch.zeros(self.classes, dtype=weights.dtype).index_add(0, labels, weights)
        return torch.bincount(labels, minlength=self.classes), sums


def get_inputs():
    return [torch.randint(0, 50, (200000,)), torch.randn(200000)]


def get_init_inputs():
    return [50]
