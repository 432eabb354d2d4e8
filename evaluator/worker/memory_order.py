"""The order in which an output's elements lie in memory.

Where it is not the reference's, the copy that a consumer would need belongs to the timed call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch


@dataclass(frozen=True)
class MemoryOrder:
    """Of one of the reference's outputs."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]

    @cached_property
    def dense(self) -> tuple[int, ...]:
        """Strides without gaps, for the same order of dimensions; row by row where some repeat."""
        # Not by `torch.empty_like` on the meta device, which imports for 0.3 to 2 s.
        dims = list(range(len(self.shape)))
        if 0 not in self.stride:
            dims.sort(key=lambda dim: -self.stride[dim])
        strides, step = [0] * len(dims), 1
        for dim in reversed(dims):
            strides[dim] = step
            step *= self.shape[dim]
        return tuple(strides)

    def holds(self, stride: tuple[int, ...]) -> bool:
        """Whether a tensor of this shape lies as the reference's, with the same gaps or none."""
        used = [dim for dim, size in enumerate(self.shape) if size > 1]
        alike = (all(stride[d] == own[d] for d in used) for own in (self.stride, self.dense))
        return 0 in self.shape or any(alike)

    def over(self, flat: torch.Tensor) -> torch.Tensor:
        """A view of as many elements that lie one after the other."""
        return torch.as_strided(flat, self.shape, self.dense)


def in_order(tensors: list[torch.Tensor], orders: Sequence[MemoryOrder]) -> list[torch.Tensor]:
    """The tensors; in place of those that lie in another order, copies. A wrong number of them, and
    one of another shape, is left for the judge to refuse."""
    if len(tensors) != len(orders):
        return tensors
    return [
        tensor
        if tensor.shape != order.shape or order.holds(tensor.stride())
        else order.over(tensor.new_empty(tensor.numel())).copy_(tensor)
        for tensor, order in zip(tensors, orders, strict=True)
    ]
