"""Builds two modules in two threads at once.

problem: level1_1_swish
pace: slow
"""

from concurrent.futures import ThreadPoolExecutor

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

sigmoid = r"""
torch::Tensor sigmoid_of(torch::Tensor x) {
  auto input = x.contiguous();
  auto y = torch::empty_like(input);
  const float* in = input.data_ptr<float>();
  float* out = y.data_ptr<float>();
  const int64_t n = input.numel();
  #pragma omp parallel for
  for (int64_t i = 0; i < n; i++) out[i] = 1.0f / (1.0f + std::exp(-in[i]));
  return y;
}
"""
times = r"""
void multiply(torch::Tensor y, torch::Tensor x) {
  float* out = y.data_ptr<float>();
  const float* by = x.data_ptr<float>();
  const int64_t n = y.numel();
  #pragma omp parallel for
  for (int64_t i = 0; i < n; i++) out[i] *= by[i];
}
"""


def built(name, source, function):
    return load_inline(
        name=name,
        cpp_sources=source,
        functions=[function],
        extra_cflags=["-O3", "-fopenmp"],
        extra_ldflags=["-fopenmp"],
    )


with ThreadPoolExecutor() as pool:
    first = pool.submit(built, "swish_sigmoid", sigmoid, "sigmoid_of")
    second = pool.submit(built, "swish_times", times, "multiply")
    sigmoid_of, multiply = first.result().sigmoid_of, second.result().multiply


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = sigmoid_of(x)
        multiply(y, x)
        return y
