"""Right outputs, spoiled: mistakes that are made without reading any kernel's text."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from tests.mutation.edit import Edit, Rule
from tests.mutation.subject import Subject

_WRAPPER = """

import torch

_right = ModelNew.forward


def _spread(y):
    return y.double().std().item()


def _spoiled(y, last=[None]):
    {body}


def _wrong(self, *arguments):
    outputs = _right(self, *arguments)
    if isinstance(outputs, torch.Tensor):
        return _spoiled(outputs.clone())
    outputs = list(outputs)
    outputs[{at}] = _spoiled(outputs[{at}].clone())
    return tuple(outputs)


ModelNew.forward = _wrong  # output {at}: {name}
"""

Fits = Callable[[Tensor], bool]


def _floats(y: Tensor) -> bool:
    return y.is_floating_point()


def _many(y: Tensor) -> bool:
    return _floats(y) and y.numel() > 99


def _rows(y: Tensor) -> bool:
    return _floats(y) and y.dim() > 1 and y.shape[0] > 1


def _columns(y: Tensor) -> bool:
    return _floats(y) and y.dim() > 1 and y.shape[-1] > 1


def _negative(y: Tensor) -> bool:
    return _many(y) and bool((y < 0).any())


def _whole(y: Tensor) -> bool:
    return not y.is_floating_point() and y.dtype is not torch.bool


def _truths(y: Tensor) -> bool:
    return y.dtype is torch.bool


def _flat(change: str) -> str:
    return f"f = y.reshape(-1); {change}; return f.reshape(y.shape)"


_TF32 = "w = y.contiguous().view(torch.int32); {0} = ({0} + 0x1000) & ~0x1FFF; "
_AS_FLOAT = "return w.view(torch.float32)"

SPOILERS: dict[str, tuple[Fits, str]] = {
    "one element off by 0.1 % of the spread": (
        _many,
        _flat("f[f.numel() // 3] += 1e-3 * _spread(y)"),
    ),
    "largest element off by 1 %": (_floats, _flat("f[f.abs().argmax()] *= 1.01")),
    "first element zero": (_floats, _flat("f[0] = 0")),
    "last element zero": (_floats, _flat("f[-1] = 0")),
    "last three elements zero": (_many, _flat("f[-3:] = 0")),
    "one element NaN": (_floats, _flat("f[f.numel() // 2] = float('nan')")),
    "one element infinite": (_floats, _flat("f[f.numel() // 2] = float('inf')")),
    "every seventh off by 0.1 %": (_many, _flat("f[::7] *= 1.001")),
    "one row off by 0.1 %": (_rows, "y[y.shape[0] // 2] *= 1.001; return y"),
    "last row zero": (_rows, "y[-1] = 0; return y"),
    "last row is the one before": (_rows, "y[-1] = y[-2]; return y"),
    "two rows swapped": (_rows, "y[[0, 1]] = y[[1, 0]]; return y"),
    "first column off by 0.1 %": (_columns, "y[..., 0] *= 1.001; return y"),
    "last column zero": (_columns, "y[..., -1] = 0; return y"),
    "columns moved by one": (_columns, "return y.roll(1, -1)"),
    "first half repeated": (
        lambda y: y.dim() > 0 and y.shape[0] > 3,
        "h = y.shape[0] // 2; y[h : 2 * h] = y[:h].clone(); return y",
    ),
    "negative ones turned": (_negative, "return y.abs()"),
    "sign": (_floats, "return -y"),
    "scaled by 1.001": (_floats, "return y * 1.001"),
    "scaled by 0.9999": (_floats, "return y * 0.9999"),
    "moved by 0.1 % of the spread": (_many, "return y + 1e-3 * _spread(y)"),
    "noise of 0.1 % of the spread": (_many, "return y + 1e-3 * _spread(y) * torch.randn_like(y)"),
    "largest clipped": (_many, "return y.clamp(max=y.reshape(-1)[::97].max().item())"),
    "smallest flushed to zero": (_many, "return y.masked_fill(y.abs() < 0.01 * _spread(y), 0.0)"),
    "through fp16": (_floats, "return y.half().float()"),
    "through bf16": (_floats, "return y.bfloat16().float()"),
    "through tf32": (_floats, _TF32.format("w") + _AS_FLOAT),
    "half of the rows through tf32": (_rows, _TF32.format("w[::2]") + _AS_FLOAT),
    "in float64": (_floats, "return y.double()"),
    "in fp16": (_floats, "return y.half()"),
    "one dimension more": (lambda y: True, "return y.unsqueeze(0)"),
    "flattened": (lambda y: y.dim() > 1, "return y.reshape(-1)"),
    "one row too few": (lambda y: y.dim() > 0 and y.shape[0] > 1, "return y[:-1]"),
    "mean everywhere": (_many, "return torch.full_like(y, y.double().mean().item())"),
    "zeros": (_floats, "return torch.zeros_like(y)"),
    "not written": (lambda y: y.numel() > 99, "return torch.empty_like(y)"),
    "that of the call before": (
        _floats,
        "old, last[0] = last[0], y; return y if old is None else old",
    ),
    "one integer off by one": (_whole, _flat("f[f.numel() // 3] += 1")),
    "largest integer zero": (_whole, _flat("f[f.argmax()] = 0")),
    "integers of 32 bits": (_whole, "return y.int()"),
    "one truth turned": (_truths, _flat("f[f.numel() // 3] ^= True")),
}
"""By name: which outputs it fits, and the statements that spoil a copy `y` of one."""


def _rule(name: str, fits: Fits, body: str) -> Rule:
    def edits(subject: Subject) -> Iterator[Edit]:
        """One for each output that it fits."""
        for at, output in enumerate(subject.outputs):
            if fits(output):
                text = _WRAPPER.format(name=name, at=at, body=body.replace("; ", "\n    "))
                yield Edit(len(subject.source), len(subject.source), text)

    return Rule(name, "output", edits)


RULES: tuple[Rule, ...] = tuple(_rule(name, *rest) for name, rest in SPOILERS.items())
