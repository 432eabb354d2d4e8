"""Comparing large tensors a block at a time, so that no mask of a whole one is ever made."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

_BLOCK = 2**25
"""Elements."""


def same(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors have equal shapes, dtypes and elements; a NaN equals any NaN."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False

    def equal(a: Tensor, b: Tensor) -> Tensor:
        return ((a == b) | ((a != a) & (b != b))).all()

    return _holds(equal, one, other)


def close(one: Tensor, other: Tensor, *, rtol: float, atol: float) -> bool:
    """`torch.allclose` in fp64, where a NaN equals any NaN."""

    def near(a: Tensor, b: Tensor) -> Tensor:
        if not a.is_complex():
            a, b = a.double(), b.double()
        return torch.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True).all()

    return _holds(near, one, other)


def finite(tensor: Tensor) -> bool:
    return _holds(lambda block, _: torch.isfinite(block).all(), tensor, tensor)


def same_bytes(one: Tensor, other: Tensor) -> bool:
    return _holds(lambda a, b: (a == b).all(), _bytes(one), _bytes(other))


def _bytes(tensor: Tensor) -> Tensor:
    flat = tensor.contiguous().view(-1).view(torch.uint8)
    aligned = flat.numel() % 8 == 0 and int(flat.storage_offset()) % 8 == 0
    return flat.view(torch.int64) if aligned else flat


def _holds(condition: Callable[[Tensor, Tensor], Tensor], one: Tensor, other: Tensor) -> bool:
    a, b = one.reshape(-1), other.reshape(-1)
    return all(
        bool(condition(a[start : start + _BLOCK], b[start : start + _BLOCK]))
        for start in range(0, a.numel(), _BLOCK)
    )


def all_close(some: list[torch.Tensor], others: list[torch.Tensor]) -> bool:
    """Whether floating-point tensors differ by no more than rounding may explain; pair by pair."""
    return all(
        close(one, other, rtol=1e-2, atol=1e-3)
        for one, other in zip(some, others, strict=True)
        if one.is_floating_point()
    )
