"""Builds sources in its own folder and loads the library itself.

problem: level1_2_gelu_tanh
pace: slow
"""

import tempfile
from pathlib import Path

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load

files = {
    "gelu.h": r"""
#pragma once
#include <cstdint>
void gelu(const float* in, float* out, int64_t n);
""",
    "gelu.cpp": r"""
#include "gelu.h"
#include <cmath>
void gelu(const float* in, float* out, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const float x = in[i];
    const float inner = 0.7978845608028654f * (x + 0.044715f * x * x * x);
    out[i] = 0.5f * x * (1.0f + std::tanh(inner));
  }
}
""",
    "registration.cpp": r"""
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/library.h>
#include "gelu.h"

at::Tensor gelu_cpu(const at::Tensor& x) {
  auto input = x.contiguous();
  auto y = at::empty_like(input);
  const float* in = input.data_ptr<float>();
  float* out = y.data_ptr<float>();
  at::parallel_for(0, input.numel(), 1 << 14, [&](int64_t begin, int64_t end) {
    gelu(in + begin, out + begin, end - begin);
  });
  return y;
}

TORCH_LIBRARY_FRAGMENT(honest_files, m) { m.def("gelu(Tensor x) -> Tensor", &gelu_cpu); }
""",
}

folder = Path(tempfile.mkdtemp())
for name, text in files.items():
    (folder / name).write_text(text)
build_directory = folder / "build"
build_directory.mkdir()
load(
    name="honest_gelu",
    sources=[str(path) for path in folder.glob("*.cpp")],
    extra_cflags=["-O3", "-march=native"],
    build_directory=str(build_directory),
    is_python_module=False,
)
# Once more, as a program does that finds the library built: it is the same one.
torch.ops.load_library(build_directory / "honest_gelu.so")


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.ops.honest_files.gelu(x)
