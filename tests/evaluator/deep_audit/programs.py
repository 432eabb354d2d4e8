"""Candidates for the scale-and-bias problem that are right; some are so by luck."""

from __future__ import annotations

from tests.evaluator.made_requests import forward as module

_TEMPLATE = '''
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline
HEAD
source = r"""
#include <torch/extension.h>
#include <vector>

torch::Tensor scale_and_bias(torch::Tensor x, torch::Tensor scale, torch::Tensor bias) {
  auto y = torch::empty_like(x);
  const float* from = x.data_ptr<float>();
  const float* by = scale.data_ptr<float>();
  const float* plus = bias.data_ptr<float>();
  float* to = y.data_ptr<float>();
  const long rows = x.size(0), columns = x.size(1);
  for (long row = 0; row < rows; ++row)
    for (long column = 0; column < columns; ++column) {
      const float value = from[row * columns + column] * by[column] + plus[column];
      to[row * columns + column] = value > 0 ? 2.0f * value : 0.0f;
    }
  EXTRA
  return y;
}
"""
kernels = load_inline("kernels", source, functions=["scale_and_bias"], extra_cflags=["-O2"])
'''

_PLAIN_C = '''
import ctypes
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline
source = r"""
extern "C" void scale_and_bias(
    const float* from, const float* by, const float* plus, float* to, long rows, long columns) {
  for (long row = 0; row < rows; ++row)
    for (long column = 0; column < columns; ++column) {
      const float value = from[row * columns + column] * by[column] + plus[column];
      to[row * columns + column] = value > 0 ? 2.0f * value : 0.0f;
    }
}
"""
kernels = ctypes.CDLL(
    load_inline("kernels", source, extra_cflags=["-O2"], is_python_module=False)
)
kernels.scale_and_bias.argtypes = 4 * [ctypes.c_void_p] + 2 * [ctypes.c_long]
kernels.scale_and_bias.restype = None
'''
_CALL_PLAIN_C = """y = torch.empty_like(x)
tensors = (x, self.scale, self.bias, y)
kernels.scale_and_bias(*(each.data_ptr() for each in tensors), *x.shape)
return y"""


def program(
    extra: str = "",
    forward: str = "return kernels.scale_and_bias(x, self.scale, self.bias)",
    head: str = "",
) -> str:
    """A candidate with `extra` C++ at the end of its kernel, and this forward."""
    return _TEMPLATE.replace("EXTRA", extra).replace("HEAD", head) + module(forward)


OWN = program()
OWN_PLAIN_C = _PLAIN_C + module(_CALL_PLAIN_C)
READS_TOO_FAR = program("volatile float taken = by[columns]; (void)taken;")
INDEX_TOO_LARGE = program(
    "float table[4] = {0, 0, 0, 0}; volatile float taken = table[rows % 7]; (void)taken;"
)
SHIFTS_TOO_FAR = program(
    "volatile int places = 33; volatile int shifted = 1 << places; (void)shifted;"
)

SLOW_WHEN_WATCHED = (
    "import time\nif 'libasan' in open('/proc/self/maps').read():\n    time.sleep(4)"
)
