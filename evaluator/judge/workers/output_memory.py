"""The memory in which a worker says that a call's outputs lie: copied from there, and looked at.

What the worker says is checked, and nothing is read beyond it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from evaluator.evaluation import Mismatch, Status
from evaluator.ipc.reply import OutputLayout, place_after
from evaluator.judge.inputs.placement import span_of
from evaluator.judge.rejection import Rejection, protocol_broken
from evaluator.judge.workers.foreign_memory import read_memory
from evaluator.reason import Reason


@dataclass(frozen=True)
class Borrowed:
    """Whether outputs lie in memory that is not each element's own."""

    inputs: bool = False
    """In the inputs' memory."""
    each_other: bool = False
    """Two outputs share elements."""
    itself: bool = False
    """Two elements of an output share an address."""


_WIDEST_VIEW = 2**30
"""Bytes from the first to the last element, in a view of a much larger tensor."""


def in_slot(slot: torch.Tensor, outputs: Sequence[OutputLayout]) -> list[torch.Tensor]:
    """Views of the outputs that the worker copied into the slot, one after the other.

    `slot`: uint8. Raises `Rejection` where they should lie elsewhere.
    """
    views, place = [], 0
    for layout in outputs:
        dtype: torch.dtype = getattr(torch, layout.dtype)
        end = place + math.prod(layout.shape) * dtype.itemsize
        if layout.place != place or end > slot.numel():
            raise protocol_broken("an output lies at another place in its slot")
        views.append(slot[place:end].view(dtype).view(layout.shape))
        place = place_after(end)
    return views


def from_worker(pid: int, number: int, layout: OutputLayout) -> torch.Tensor:
    """A copy of an output in a worker that stands still. Raises `Rejection`, or `OSError` where
    there is no such memory, or no worker any more."""
    dtype: torch.dtype = getattr(torch, layout.dtype)
    span = span_of(layout.shape, layout.stride)
    if span > 4 * math.prod(layout.shape) and span * dtype.itemsize > _WIDEST_VIEW:
        raise Rejection(
            Status.INCORRECT,
            Reason.WRONG_LAYOUT,
            f"output {number}, of shape {layout.shape}, is a view with strides {layout.stride}"
            " into a tensor of more than 1 GiB; return a tensor of its own, as .contiguous()"
            " makes it",
            mismatch=Mismatch(output=number, kind="shape", actual_shape=layout.shape),
        )
    raw = torch.empty(span * dtype.itemsize, dtype=torch.uint8)
    read_memory(pid, layout.place, raw)
    return torch.as_strided(raw.view(dtype), layout.shape, layout.stride).contiguous()


def lies_within(outputs: Sequence[OutputLayout], spans: Sequence[tuple[int, int]]) -> bool:
    return any(
        begin < last and first < end
        for begin, end in map(_addresses, outputs)
        for first, last in spans
    )


def any_overlap(outputs: Sequence[OutputLayout]) -> bool:
    """Whether two outputs share elements; strided ones may share a buffer without sharing any."""
    cluster: list[OutputLayout] = []
    end = 0
    for each in sorted((o for o in outputs if 0 not in o.shape), key=_addresses):
        first, last = _addresses(each)
        if first >= end:
            cluster = []
        cluster.append(each)
        if len(cluster) > 1 and _share_elements(cluster):
            return True
        end = max(end, last)
    return False


def any_repeats(outputs: Sequence[OutputLayout]) -> bool:
    """Whether an output has two elements at one address, as `expand` and `unfold` make them."""
    return any(_share_elements([each]) for each in outputs if 0 not in each.shape)


def _share_elements(outputs: Sequence[OutputLayout]) -> bool:
    """Whether one address is that of two elements: all are marked in a map, if it isn't too large.

    They overlap, so that the map is not much larger than they are.
    """
    itemsizes: list[int] = [getattr(torch, each.dtype).itemsize for each in outputs]
    first = min(_addresses(each)[0] for each in outputs)
    span = max(_addresses(each)[1] for each in outputs) - first
    size = sum(math.prod(o.shape) * bytes_ for o, bytes_ in zip(outputs, itemsizes, strict=True))
    if size >= span or span > _WIDEST_VIEW:
        return size > span
    unit = math.gcd(*itemsizes, *(each.place - first for each in outputs))
    marks = np.zeros(span // unit, dtype=np.bool_)
    for each, itemsize in zip(outputs, itemsizes, strict=True):
        strides = [step * itemsize // unit for step in each.stride]
        for part in range(itemsize // unit):
            begin = marks[(each.place - first) // unit + part :]
            np.lib.stride_tricks.as_strided(begin, each.shape, strides)[...] = True
    return bool(np.count_nonzero(marks) * unit < size)


def _addresses(output: OutputLayout) -> tuple[int, int]:
    size = span_of(output.shape, output.stride) * getattr(torch, output.dtype).itemsize
    return output.place, output.place + size
