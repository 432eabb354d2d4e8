"""Calls a plain C library through ctypes on raw addresses.

problem: level1_1_swish
"""

import ctypes

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <cmath>
#include <cstdint>

extern "C" void swish(const float* in, float* out, int64_t n) {
  #pragma omp parallel for
  for (int64_t i = 0; i < n; i++) out[i] = in[i] / (1.0f + std::exp(-in[i]));
}
"""

library = ctypes.CDLL(
    load_inline(
        name="swish_c",
        cpp_sources=source,
        extra_cflags=["-O3", "-march=native", "-fopenmp"],
        is_python_module=False,
    )
)
library.swish.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
library.swish.restype = None


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        library.swish(x.data_ptr(), y.data_ptr(), x.numel())
        return y
