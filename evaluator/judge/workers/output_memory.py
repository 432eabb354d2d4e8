"""The memory in which a worker says that a call's outputs lie: copied from there, and looked at.

What the worker says is checked, and nothing is read beyond it. A CPU's worker stands still while
its memory is read from outside: so outputs need no copy inside the timed call, and nothing that it
does after it said "returned" can change them. What is left to a cheat is the time between that word
and the stop, some tens of microseconds.
"""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from evaluator.ipc.reply import OutputLayout, place_after
from evaluator.judge.inputs.placement import span_of
from evaluator.judge.rejection import protocol_broken
from evaluator.worker.memory_order import MemoryOrder

Array = np.ndarray[Any, Any]
_libc = ctypes.CDLL(None, use_errno=True)


class _Span(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


_libc.process_vm_readv.restype = ctypes.c_ssize_t
_libc.process_vm_readv.argtypes = [
    ctypes.c_int,
    ctypes.POINTER(_Span),
    ctypes.c_ulong,
    ctypes.POINTER(_Span),
    ctypes.c_ulong,
    ctypes.c_ulong,
]


@dataclass(frozen=True)
class Borrowed:
    """Whether outputs lie in memory that is not each element's own."""

    inputs: bool = False
    each_other: bool = False
    itself: bool = False
    """Two elements of an output share an address."""


_EFFORT = 1000
"""Solutions that are tried to find out whether strided tensors overlap: 0.1 ms at most."""


def in_slot(
    slot: torch.Tensor, outputs: Sequence[OutputLayout], orders: Iterable[MemoryOrder]
) -> list[torch.Tensor]:
    """The outputs that the worker copied into the slot, one after the other.

    `slot`: uint8. Raises `Rejection` where they should lie elsewhere.
    """
    found, place = [], 0
    for layout, order in zip(outputs, orders, strict=False):
        dtype: torch.dtype = getattr(torch, layout.dtype)
        end = place + math.prod(layout.shape) * dtype.itemsize
        if layout.place != place or end > slot.numel():
            raise protocol_broken("an output lies at another place in its slot")
        found.append(order.over(slot[place:end].view(dtype)).contiguous())
        place = place_after(end)
    return found


def from_worker(pid: int, layout: OutputLayout, order: MemoryOrder) -> torch.Tensor:
    """A copy of an output in a worker that stands still. Raises `Rejection`, or `OSError` where
    there is no such memory, or no worker any more."""
    if not order.holds(layout.stride):
        raise protocol_broken("an output lies in another memory order than the reference's")
    dtype: torch.dtype = getattr(torch, layout.dtype)
    raw = torch.empty(span_of(layout.shape, layout.stride) * dtype.itemsize, dtype=torch.uint8)
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
    return any(_overlap(*pair) for pair in combinations(map(_strided, outputs), 2))


def any_repeats(outputs: Sequence[OutputLayout]) -> bool:
    """Whether an output has two elements at one address, as `expand` and `unfold` make them."""
    return any(map(_repeats, map(_strided, outputs)))


def _repeats(array: Array) -> bool:
    """Of two such elements, let `dim` be the first dimension in which their indices differ."""
    dims = sorted(range(array.ndim), key=array.strides.__getitem__, reverse=True)
    parts = [array.transpose(dims)[(0,) * dim] for dim in range(array.ndim) if array.size]
    return any(_overlap(part[:1], part[1:]) for part in parts)


def _overlap(one: Array, other: Array) -> bool:
    """What cannot be decided with the usual effort counts as an overlap."""
    return np.may_share_memory(one, other, max_work=_EFFORT)  # type: ignore[arg-type] # any int


def _strided(output: OutputLayout) -> Array:
    """An array at the output's address, whose elements are never read."""
    itemsize: int = getattr(torch, output.dtype).itemsize
    interface = {
        "version": 3,
        "typestr": f"|V{itemsize}",
        # NumPy has no arrays at address 0.
        "data": (max(output.place, 1), True),
        "shape": output.shape,
        "strides": tuple(step * itemsize for step in output.stride),
    }
    return np.asarray(SimpleNamespace(__array_interface__=interface))


def _addresses(output: OutputLayout) -> tuple[int, int]:
    size = span_of(output.shape, output.stride) * getattr(torch, output.dtype).itemsize
    return output.place, output.place + size


def read_memory(pid: int, address: int, target: torch.Tensor) -> None:
    """Fill `target` (uint8, contiguous, CPU) from another process; raises `OSError`.

    Needs the right to trace that process (CAP_SYS_PTRACE, or the same user and no Yama in the way).
    """
    done, count = 0, target.numel()
    while done < count:
        here = _Span(target.data_ptr() + done, count - done)
        there = _Span(address + done, count - done)
        got = _libc.process_vm_readv(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
        if got <= 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        done += got


def can_read(pid: int) -> bool:
    """Whether this system lets us read that process's memory."""
    probe = torch.zeros(1, dtype=torch.uint8)
    try:
        read_memory(pid, _mapped_address(pid), probe)
    except OSError:
        return False
    return True


def _mapped_address(pid: int) -> int:
    with Path(f"/proc/{pid}/maps").open() as maps:
        for line in maps:
            span, rights, *_ = line.split()
            if rights.startswith("r"):
                return int(span.partition("-")[0], 16)
    return 0
