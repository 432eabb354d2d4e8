"""Builds two modules, from files in a temporary folder.

problem: level1_7_rms_norm
pace: slow
"""

import tempfile
from pathlib import Path

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load, load_inline

folder = Path(tempfile.mkdtemp(prefix="rms_norm_"))
(folder / "row_scale.h").write_text(
    """
#pragma once
#include <cmath>
#include <cstdint>
inline float row_scale(const float* row, int64_t n, float eps) {
  float parts[8] = {};
  for (int64_t c = 0; c < n; ++c) parts[c % 8] += row[c] * row[c];
  float sum = 0.0f;
  for (float part : parts) sum += part;
  return 1.0f / std::sqrt(sum / n + eps);
}
"""
)
(folder / "scales.cpp").write_text(
    """
#include <torch/extension.h>
#include "row_scale.h"
torch::Tensor scales(torch::Tensor x, double eps) {
  auto result = torch::empty({x.size(0), 1}, x.options());
  for (int64_t r = 0; r < x.size(0); ++r) {
    const float* row = x.data_ptr<float>() + r * x.size(1);
    result.data_ptr<float>()[r] = row_scale(row, x.size(1), static_cast<float>(eps));
  }
  return result;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scales", &scales, "one scale a row"); }
"""
)
first = load(name="rms_scales", sources=[str(folder / "scales.cpp")], extra_cflags=["-O3"])
second = load_inline(
    name="rms_apply",
    cpp_sources="""
#include <torch/extension.h>
torch::Tensor apply(torch::Tensor x, torch::Tensor scales, torch::Tensor weight) {
  return x * scales * weight;
}
""",
    functions={"apply": "x times both"},
)


class ModelNew(nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return second.apply(x, first.scales(x, self.eps), self.weight)
