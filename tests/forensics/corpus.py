"""The references, and for each wrong kernel the class of its bug. All are built as one library."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

KERNELS = (Path(__file__).parent / "kernels.h").read_text()


@dataclass(frozen=True)
class Planted:
    """A wrong kernel: how forward calls it, and what the judge should say first."""

    name: str
    reference: str
    forward: str
    bug: str
    """The class: a pattern of `Mismatch.patterns`."""


_AFFINE = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1000))
        self.bias = nn.Parameter(torch.zeros(1000))

    def forward(self, x):
        return torch.relu(x * self.scale + self.bias) * 0.5

def get_inputs():
    return [torch.randn(127, 1000)]
"""
_SOFTMAX = """
class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, 1)

def get_inputs():
    return [torch.randn(200, 200)]
"""
_HOT = _SOFTMAX.replace("torch.randn(200, 200)", "200 * torch.rand(200, 200)")
_MATMUL = """
class Model(nn.Module):
    def forward(self, a, b):
        return a @ b

def get_inputs():
    return [torch.randn(120, 120), torch.randn(120, 120)]
"""
_MEAN = """
class Model(nn.Module):
    def forward(self, x):
        return x.mean(1)

def get_inputs():
    return [torch.rand(300, 300)]
"""
_SCAN = """
class Model(nn.Module):
    def forward(self, x):
        return torch.cumsum(x, 1)

def get_inputs():
    return [torch.randn(60, 300)]
"""
_POOL = """
class Model(nn.Module):
    def forward(self, x):
        return nn.functional.max_pool2d(x, 3, 1, 1)

def get_inputs():
    return [torch.randn(2, 3, 64, 64)]
"""
_AVERAGE = _POOL.replace("max_pool2d(x, 3, 1, 1)", "avg_pool2d(x, 3, 1, 1)")
_NORM = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(100))
        self.bias = nn.Parameter(torch.zeros(100))

    def forward(self, x):
        centred = x - x.mean(1, keepdim=True)
        variance = x.var(1, keepdim=True, correction=0)
        return centred / torch.sqrt(variance + 0.1) * self.weight + self.bias

def get_inputs():
    return [torch.randn(90, 100) + 0.5]
"""
_CONV = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 8, 3, padding=1)

    def forward(self, x):
        return torch.tanh(self.conv(x)) + x.mean(1, keepdim=True)

def get_inputs():
    return [torch.randn(2, 4, 32, 32)]
"""
_LARGEST = """
class Model(nn.Module):
    def forward(self, x):
        return torch.argmax(x, 1)

def get_inputs():
    return [torch.randn(400, 50)]
"""


def _native(reference: str, arguments: str, **bugs: str) -> list[Planted]:
    return [
        Planted(name, reference, f"return kernels.{name}({arguments})", bug)
        for name, bug in bugs.items()
    ]


def _python(reference: str, **bugs: tuple[str, str]) -> list[Planted]:
    return [Planted(name, reference, body, bug) for name, (body, bug) in bugs.items()]


PLANTED = (
    *_native(
        _AFFINE,
        "x, self.scale, self.bias",
        affine_tail="boundary",
        affine_lanes="every_kth",
        affine_rows="rows",
        affine_last_column="boundary",
        affine_no_half="factor",
        affine_half_on_the_way="precision",
        affine_bf16_result="precision",
        affine_shifted="shifted",
        affine_one_value="constant",
    ),
    *_python(
        _AFFINE,
        affine_zeros=("return torch.zeros_like(x)", "zeros"),
        affine_input=("return x.clone()", "input_copy"),
        affine_offset=("return torch.relu(x * self.scale + self.bias) * 0.5 + 0.01", "offset"),
    ),
    *_native(_HOT, "x", softmax_no_shift="nan"),
    *_native(
        _SOFTMAX,
        "x",
        softmax_not_divided="row_factor",
        softmax_half_summed="row_factor",
    ),
    *_native(
        _MATMUL,
        "a, b",
        matmul_c_turned="transposed",
        matmul_bf16_sum="precision",
    ),
    *_native(
        _MEAN,
        "x",
        mean_is_sum="factor",
        mean_race="race",
    ),
    *_native(_SCAN, "x", scan_exclusive="shifted", scan_no_carry="columns"),
    *_native(_POOL, "x", pool_no_rim="boundary"),
    *_python(
        _AVERAGE,
        average_over_what_is_there=(
            "return nn.functional.avg_pool2d(x, 3, 1, 1, count_include_pad=False)",
            "boundary",
        ),
    ),
    *_native(
        _NORM,
        "x, self.weight, self.bias",
        norm_sample_variance="precision",
    ),
    *_python(
        _CONV,
        conv_other_channels=(
            "y = torch.tanh(self.conv(x)) + x.mean(1, keepdim=True)\n"
            "return y.permute(0, 2, 3, 1).reshape(y.shape)",
            "transposed",
        ),
    ),
    *_python(_LARGEST, largest_from_one=("return torch.argmax(x, 1) + 1", "offset")),
)


def reference(planted: Planted) -> str:
    """The problem as a file."""
    head = "import torch\nimport torch.nn as nn\n"
    return f"{head}{planted.reference}\ndef get_init_inputs():\n    return []\n"


def candidate(planted: Planted) -> str:
    """The wrong kernel as a file: the reference's constructor, another forward."""
    start, arguments = re.split(
        r"    def forward\(self, (.*)\):\n", planted.reference.split("\ndef get_inputs")[0]
    )[:2]
    body = planted.forward.replace("\n", "\n        ")
    functions = re.findall(r"^T (\w+)\(", KERNELS, re.MULTILINE)
    build = (
        "from torch.utils.cpp_extension import load_inline\n"
        f'SOURCE = r"""{KERNELS}"""\n'
        f"kernels = load_inline(name='forensics', cpp_sources=SOURCE, functions={functions},\n"
        "    extra_cflags=['-O2', '-fopenmp'])\n"
    )
    return (
        f"import torch\nimport torch.nn as nn\n{build if 'kernels.' in body else ''}"
        f"{start.replace('class Model(', 'class ModelNew(')}"
        f"    def forward(self, {arguments}):\n        {body}\n"
    )
