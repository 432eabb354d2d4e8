"""An expression that draws tensors like one at hand: its kind of values, in its order in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

_LITERALS = (bool, int, float, str)
_FEW = 4
"""So many values, in a tensor that has more elements than `_MANY`, are those of a mask."""
_MANY = 8
_SAMPLED = 4096


class Expression(str):
    """Inside lists, tuples and dicts: their text has it as it is."""

    __repr__ = str.__str__


@dataclass(frozen=True)
class MemoryOrder:
    """How a tensor lies, gaps left out."""

    dims: tuple[int, ...]
    """The one with the largest stride first."""
    repeated: tuple[int, ...]
    """Those with stride 0."""

    @classmethod
    def of(cls, tensor: torch.Tensor) -> MemoryOrder:
        dims, strides = range(tensor.dim()), tensor.stride()
        if tensor.is_contiguous():
            return cls(tuple(dims), ())
        repeated = tuple(dim for dim in dims if strides[dim] == 0 and tensor.shape[dim] > 1)
        return cls(tuple(sorted(dims, key=lambda dim: -strides[dim])), repeated)


def literal(value: object) -> str | None:
    """None for what has no text of its own."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    if value is None or isinstance(value, torch.dtype | torch.Size):
        return repr(value).removeprefix("torch.Size")
    return next((repr(k(value)) for k in _LITERALS if isinstance(value, k)), None)


def drawn(tensor: torch.Tensor, sizes: Sequence[object]) -> str:
    """`sizes`: its shape, or the texts that stand for it."""
    order = MemoryOrder.of(tensor)
    once = [1 if dim in order.repeated else sizes[dim] for dim in range(tensor.dim())]
    text = _values(tensor, _tuple([once[dim] for dim in order.dims]))
    if list(order.dims) != sorted(order.dims):
        text = f"({text}).permute({_tuple([order.dims.index(dim) for dim in range(tensor.dim())])})"
    return f"({text}).expand({_tuple(sizes)})" if order.repeated else text


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
