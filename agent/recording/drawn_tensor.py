"""An expression that draws tensors like one at hand: its kind of values, in its order in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

_LITERALS = (bool, int, float, str)
_FEW = 4
"""So many values, in a tensor that has more elements than `_MANY`, are those of a mask."""
_MANY = 8
_SAMPLED = 4096


class Expression(str):
    """Inside lists, tuples and dicts: their text has it as it is."""

    __repr__ = str.__str__


def literal(value: object) -> str | None:
    """None for what has no text of its own."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    if value is None or isinstance(value, torch.dtype | torch.Size):
        return repr(value).removeprefix("torch.Size")
    return next((repr(k(value)) for k in _LITERALS if isinstance(value, k)), None)


def memory_order(tensor: torch.Tensor) -> tuple[list[int], list[int]]:
    """How it lies, gaps left out: its dimensions, the one with the largest stride first; and those
    that repeat, with stride 0."""
    dims, strides = list(range(tensor.dim())), tensor.stride()
    if tensor.is_contiguous():
        return dims, []
    repeated = [dim for dim in dims if strides[dim] == 0 and tensor.shape[dim] > 1]
    return sorted(dims, key=lambda dim: -strides[dim]), repeated


def drawn(tensor: torch.Tensor, sizes: Sequence[object]) -> str:
    """`sizes`: its shape, or the texts that stand for it."""
    order, repeated = memory_order(tensor)
    text = _values(tensor, _tuple([1 if dim in repeated else sizes[dim] for dim in order]))
    if order != sorted(order):
        text = f"({text}).permute({_tuple([*map(order.index, range(len(order)))])})"
    return f"({text}).expand({_tuple(sizes)})" if repeated else text


def _values(tensor: torch.Tensor, shape: str) -> str:
    """Of floating ones never a constant: a kernel may not rely on what one call held."""
    dtype = str(tensor.dtype)
    if tensor.dtype is torch.bool:
        return f"torch.randint(0, 2, {shape}).bool(){_with_one(tensor, True)}"
    if not tensor.is_floating_point() and not tensor.is_complex():
        low, high = (int(tensor.min()), int(tensor.max()) + 1) if tensor.numel() else (0, 2)
        return f"torch.randint({low}, {high}, {shape}, dtype={dtype})"
    normal = f"torch.randn({shape}, dtype={dtype})"
    if tensor.is_complex() or not tensor.numel():
        return normal
    values = tensor.detach().double()
    few = values.flatten()[:_SAMPLED].unique()
    if len(few) <= _FEW and tensor.numel() > _MANY and 1 < len(few := values.unique()) <= _FEW:
        listed = ", ".join(str(literal(value)) for value in few.tolist())
        picked = f"torch.tensor([{listed}], dtype={dtype})[torch.randint(0, {len(few)}, {shape})]"
        return picked + _with_one(tensor, float(few[-1]))
    values = values[values.isfinite()]
    mean, spread = float(values.mean()), float(values.std(correction=0))
    if not spread > 0:
        return f"{normal} * {abs(mean) / 10:.2g} + {mean:.2g}" if mean else normal
    if bool((values >= 0).all()):
        return f"{normal}.abs() * {float(values.square().mean().sqrt()):.2g}"
    shift = f" + {mean:.2g}" if abs(mean) > spread / 4 else ""
    return normal if not shift and 0.5 <= spread <= 2 else f"{normal} * {spread:.2g}{shift}"


def _with_one(tensor: torch.Tensor, value: float | bool) -> str:
    """Where each row has such an element, as each row of a mask leaves one, the drawn ones do."""
    has_one = tensor.dim() > 0 and tensor.numel() > 0 and bool((tensor == value).any(-1).all())
    return f".index_fill(-1, torch.tensor([0]), {literal(value)})" if has_one else ""


def _tuple(sizes: Sequence[object]) -> str:
    return f"({', '.join(map(str, sizes))}{',' * (len(sizes) == 1)})"
