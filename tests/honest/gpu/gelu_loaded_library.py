"""Builds sources in its own folder and loads the library itself.

problem: level1_2_gelu_tanh
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
void gelu(const float* in, float* out, int64_t n, void* stream);
""",
    "gelu.cu": r"""
#include <cuda_runtime.h>
#include "gelu.h"

__global__ void gelu_kernel(const float* __restrict__ in, float* __restrict__ out, int64_t n) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < n; i += step) {
    const float x = in[i];
    const float inner = 0.7978845608028654f * (x + 0.044715f * x * x * x);
    out[i] = 0.5f * x * (1.0f + tanhf(inner));
  }
}

void gelu(const float* in, float* out, int64_t n, void* stream) {
  gelu_kernel<<<2048, 256, 0, static_cast<cudaStream_t>(stream)>>>(in, out, n);
}
""",
    "registration.cpp": r"""
#include <ATen/ATen.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>
#include "gelu.h"

at::Tensor gelu_cuda(const at::Tensor& x) {
  auto input = x.contiguous();
  auto y = at::empty_like(input);
  auto stream = c10::cuda::getCurrentCUDAStream();
  gelu(input.data_ptr<float>(), y.data_ptr<float>(), input.numel(), stream.stream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}

TORCH_LIBRARY_FRAGMENT(honest_files, m) { m.def("gelu(Tensor x) -> Tensor", &gelu_cuda); }
""",
}

folder = Path(tempfile.mkdtemp())
for name, text in files.items():
    (folder / name).write_text(text)
build_directory = folder / "build"
build_directory.mkdir()
load(
    name="honest_gelu",
    sources=[str(folder / "gelu.cu"), str(folder / "registration.cpp")],
    extra_cuda_cflags=["-O3"],
    build_directory=str(build_directory),
    is_python_module=False,
)
# Once more, as a program does that finds the library built: it is the same one.
torch.ops.load_library(build_directory / "honest_gelu.so")


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.ops.honest_files.gelu(x)
