"""Candidates for one small problem on a CPU: right ones, wrong ones, and ones that crash."""

from __future__ import annotations

REFERENCE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(features))
        self.scale = nn.Parameter(torch.ones(features))

    def forward(self, x):
        return torch.relu(x * self.scale + self.bias) * 2.0

def get_inputs():
    return [torch.randn(256, 512)]

def get_init_inputs():
    return [512]
"""

_MODULE = """
import os, signal
import torch
import torch.nn as nn
{before}
class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(features))
        self.scale = nn.Parameter(torch.ones(features))

    def forward(self, x):
        {forward}
"""

_CPP = '''
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <torch/extension.h>

torch::Tensor run(torch::Tensor x, torch::Tensor scale, torch::Tensor bias) {{
    auto y = torch::empty_like(x);
    const int64_t rows = x.size(0), columns = x.size(1);
    const float* in = x.data_ptr<float>();
    const float* s = scale.data_ptr<float>();
    const float* b = bias.data_ptr<float>();
    float* out = y.data_ptr<float>();
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c) {{
            {inner}
        }}
    return y;
}}
"""
built = load_inline(name="row", cpp_sources=SOURCE, functions=["run"])
'''
_INNER = "const float v = in[r * columns + c] * s[c] + b[c]; out[r * columns + c] = "


def _eager(forward: str, before: str = "") -> str:
    return _MODULE.format(before=before, forward=forward)


def _cpp(inner: str) -> str:
    return _eager("return built.run(x, self.scale, self.bias)", _CPP.format(inner=inner))


CANDIDATES = {
    "eager_right": _eager("return torch.relu(x * self.scale + self.bias) * 2.0"),
    "eager_right_clamp": _eager("return (x * self.scale + self.bias).clamp_min(0.0).mul(2.0)"),
    "eager_right_addcmul": _eager("return 2.0 * torch.addcmul(self.bias, x, self.scale).relu()"),
    "cpp_right": _cpp(f"{_INNER} v > 0 ? 2 * v : 0;"),
    "cpp_right_sum": _cpp(f"{_INNER} v > 0 ? v + v : 0;"),
    "eager_wrong_factor": _eager("return torch.relu(x * self.scale + self.bias) * 2.5"),
    "eager_wrong_shape": _eager("return torch.relu(x * self.scale + self.bias)[:-1] * 2.0"),
    "eager_zeros": _eager("return torch.zeros_like(x)"),
    "cpp_wrong_bias": _cpp("const float v = in[r * columns + c] * s[c] - b[c];"
                           "out[r * columns + c] = v > 0 ? 2 * v : 0;"),
    "cpp_wrong_every_seventh": _cpp(f"{_INNER} c % 7 ? (v > 0 ? 2 * v : 0) : v;"),
    "cpp_does_not_build": _cpp("out[r * columns + c] = no_such_name(s[c]);"),
    "cpp_crashes": _cpp("((volatile float*)nullptr)[c] = in[c];"),
    "eager_raises": _eager("raise ValueError('not today')"),
    "eager_kills_itself": _eager("os.kill(os.getpid(), signal.SIGKILL)"),
    "not_python": "x = (",
    "no_model": "import torch\n",
}  # fmt: skip
