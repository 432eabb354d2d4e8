"""Putting Python values into an arena: tensors as bytes at chosen places, the rest as JSON."""

from __future__ import annotations

import math
from typing import Any

import torch

from evaluator.errors import UnusableReferenceError
from evaluator.worker.orders import Layout
from evaluator.worker.values import dtype_name

_ALIGNMENT = 512
_END_ALIGNMENT = 64
"""Of a tensor at the end of the memory: what kernels may rely on. No instruction loads more at
once, and PyTorch's own tensors have no more on a CPU; views in models often have 16 on a GPU."""
_MARGIN_BYTES = 4096
_GAP_BYTES = 64
"""At least that much of a margin lies between two tensors, whatever their sizes."""
_NO_NUMBER = 0xFF
"""A byte that repeated is NaN in every floating dtype, and -1 in every integer one."""
MARGINS = (_NO_NUMBER, 0x7B, 0xFB)
"""NaN, or 6e4 and more, or -6e4 and less in every floating dtype: a sum over one element too many
shows with the first, a maximum, which passes NaN over, with the second, a minimum with the third.
"""


class Placement:
    """Lays tensors one after the other into `memory` (uint8, shape [size]), from `start` on.

    What lies before, between and after them is `margin`, one of `MARGINS`, repeated: zeros, or the
    numbers of an earlier call, would let a kernel pass that reads beyond the end. Around integers
    it is always -1. The tensor with number `at_end` lies at the end of the memory instead.
    """

    def __init__(
        self,
        memory: torch.Tensor,
        start: int = 0,
        margin: int = _NO_NUMBER,
        at_end: int | None = None,
    ) -> None:
        self.memory = memory
        self._start = self._next = start
        self._margin = margin
        self._at_end = at_end
        self._limit = memory.numel()
        """Where what follows is no longer free."""
        self.first = max(0, start - _MARGIN_BYTES)
        """The first byte that was written."""
        self.last = start + _ALIGNMENT
        """The one after the last."""
        memory[self.first : self.last].fill_(margin)
        self.spans: list[tuple[int, int]] = []
        """First byte and number of bytes of each tensor."""

    def again(self, memory: torch.Tensor) -> Placement:
        return Placement(memory, self._start, self._margin, self._at_end)

    def place(self, value: Any) -> Any:
        """The JSON form of `value`; its tensors are copied into the arena."""
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if isinstance(value, list):
            return {"kind": "list", "items": [self.place(item) for item in value]}
        if isinstance(value, torch.Size):
            return {"kind": "size", "items": list(value)}
        if isinstance(value, tuple):
            return {"kind": "tuple", "items": [self.place(item) for item in value]}
        if isinstance(value, dict):
            items = [[key, self.place(item)] for key, item in value.items()]
            return {"kind": "dict", "items": items}
        if isinstance(value, torch.dtype):
            return {"kind": "dtype", "name": dtype_name(value)}
        if isinstance(value, torch.device):
            return {"kind": "device", "name": str(value)}
        if isinstance(value, float) and not math.isfinite(value):
            return {"kind": "float", "text": repr(value)}
        if value is None or isinstance(value, bool | int | float | str):
            return value
        raise UnusableReferenceError(
            f"an argument of type {type(value).__name__} cannot be handed to a worker"
        )

    def tensor(self, tensor: torch.Tensor) -> Layout:
        tensor = tensor.detach()
        shape, stride = tuple(tensor.shape), tuple(tensor.stride())
        size = tensor.element_size()
        span = span_of(shape, stride) * size
        at_end = len(self.spans) == self._at_end
        if at_end:
            start = (self._limit - span) // _END_ALIGNMENT * _END_ALIGNMENT
        else:
            start = -(-self._next // _ALIGNMENT) * _ALIGNMENT
        end = start + span
        if start < self._next or end > self._limit:
            raise ValueError("the arena is too small")
        margin = self._margin if tensor.is_floating_point() else _NO_NUMBER
        behind = min(end + _MARGIN_BYTES, self._limit)
        self.memory[end:behind].fill_(margin)
        self.last = max(self.last, behind)
        flat = self.memory[start:end].view(tensor.dtype)
        view = torch.as_strided(flat, shape, stride)
        if 0 in stride:
            # An expanded tensor: its storage is copied, not each of its aliases.
            once = tuple(slice(0, 1) if s == 0 else slice(None) for s in stride)
            view[once].copy_(tensor[once])
        else:
            view.copy_(tensor)
        if at_end:
            self.memory[max(self._next, start - _MARGIN_BYTES) : start].fill_(margin)
            self._limit = start
        else:
            self._next = end + _GAP_BYTES
        self.spans.append((start, end - start))
        return {
            "kind": "tensor",
            "offset": start,
            "span": end - start,
            "shape": list(shape),
            "stride": list(stride),
            "dtype": dtype_name(tensor.dtype),
        }


def span_of(shape: tuple[int, ...], stride: tuple[int, ...]) -> int:
    """Elements from the first to the last one of a strided tensor, inclusive."""
    if 0 in shape:
        return 0
    return int(1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True)))


def bytes_needed(value: Any) -> int:
    """An upper bound of what placing `value` takes."""
    if isinstance(value, torch.Tensor):
        span = span_of(tuple(value.shape), tuple(value.stride()))
        return int(span * value.element_size()) + _GAP_BYTES + _ALIGNMENT
    if isinstance(value, dict):
        return sum(bytes_needed(item) for item in value.values())
    if isinstance(value, list | tuple):
        return sum(bytes_needed(item) for item in value)
    return 0
