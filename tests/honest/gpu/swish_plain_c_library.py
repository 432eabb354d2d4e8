"""Launches a plain C library's kernel through ctypes.

problem: level1_1_swish
"""

import ctypes

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
__global__ void swish_kernel(const float* __restrict__ in, float* __restrict__ out, int64_t n) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < n; i += step) {
    const float v = in[i];
    out[i] = v / (1.0f + expf(-v));
  }
}

extern "C" int swish(const float* in, float* out, int64_t n, cudaStream_t stream) {
  swish_kernel<<<2048, 256, 0, stream>>>(in, out, n);
  return cudaGetLastError();
}
"""

library = ctypes.CDLL(
    load_inline(
        name="swish_c",
        cpp_sources="",
        cuda_sources=cuda,
        extra_cuda_cflags=["-O3"],
        is_python_module=False,
    )
)
library.swish.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p]


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        stream = torch.cuda.current_stream().cuda_stream
        error = library.swish(x.data_ptr(), y.data_ptr(), x.numel(), stream)
        assert error == 0, f"the launch failed: {error}"
        return y
