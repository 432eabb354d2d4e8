"""The memory in which a worker says that a call's outputs lie: copied from there, and looked at.

What the worker says is checked, and nothing is read beyond it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch

from evaluator.evaluation import Mismatch, Status
from evaluator.judge.arena import Arena
from evaluator.judge.foreign_memory import read_memory
from evaluator.judge.placement import span_of
from evaluator.judge.refusal import Refusal
from evaluator.reply import OutputLayout

_WIDEST_VIEW = 2**30
"""Bytes from the first to the last element, in a view of a much larger tensor."""


def in_slot(slot: Arena, layout: OutputLayout) -> torch.Tensor:
    """A view of an output that the worker copied into the slot; raises `Refusal`."""
    dtype: torch.dtype = getattr(torch, layout.dtype)
    end = layout.place + math.prod(layout.shape) * dtype.itemsize
    if layout.place % dtype.itemsize or end > slot.size:
        raise Refusal(Status.INTEGRITY, "protocol_broken", "an output outside its slot")
    flat = slot.bytes[layout.place : end].view(dtype)
    return flat.view(layout.shape)


def from_worker(pid: int, number: int, layout: OutputLayout) -> torch.Tensor:
    """A copy of an output in a worker that stands still. Raises `Refusal`, or `OSError` where there
    is no such memory, or no worker any more."""
    dtype: torch.dtype = getattr(torch, layout.dtype)
    span = span_of(layout.shape, layout.stride)
    if span > 4 * math.prod(layout.shape) and span * dtype.itemsize > _WIDEST_VIEW:
        raise Refusal(
            Status.INCORRECT,
            "wrong_layout",
            f"output {number}, of shape {layout.shape}, is a view with strides {layout.stride}"
            " into a tensor of more than 1 GiB; return a tensor of its own, as .contiguous()"
            " makes it",
            mismatch=Mismatch(output=number, kind="shape", actual_shape=layout.shape),
        )
    raw = torch.empty(span * dtype.itemsize, dtype=torch.uint8)
    read_memory(pid, layout.place, raw)
    return torch.as_strided(raw.view(dtype), layout.shape, layout.stride).contiguous()


def lies_within(outputs: Sequence[OutputLayout], spans: Sequence[tuple[int, int]]) -> bool:
    """Whether some output lies in one of these spans of the worker's addresses."""
    return any(
        begin < last and first < end
        for begin, end in map(_addresses, outputs)
        for first, last in spans
    )


def any_overlap(outputs: Sequence[OutputLayout]) -> bool:
    """Whether two outputs share elements.

    Only dense ones are looked at: strided ones may share a buffer without sharing an element.
    """
    dense = sorted(
        _addresses(each)
        for each in outputs
        if 0 < span_of(each.shape, each.stride) == math.prod(each.shape)
    )
    return any(first[1] > then[0] for first, then in pairwise(dense))


def _addresses(output: OutputLayout) -> tuple[int, int]:
    """The first byte, and the one behind the last."""
    size = span_of(output.shape, output.stride) * getattr(torch, output.dtype).itemsize
    return output.place, output.place + size
