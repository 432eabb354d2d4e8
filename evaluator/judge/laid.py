"""Inputs of a call, withheld from the worker until the call starts.

On a CPU the judge keeps them to itself, and they reach the memory that workers map right before
the start signal, whole. On a GPU that copy would leave them in its cache, where they would be
read faster than its memory allows: there they lie in the arena already, and some cache lines, at
secret places, hold the contents of other lines of the same tensor until the start. What was
computed early is wrong there, and whoever looks for what has changed must read all inputs again.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch

from evaluator.judge.placement import Placement

LINE_BYTES = 64
_MOST_LINES = 1024
"""Of one call, over all its tensors: 64 KiB are written within some tens of microseconds."""


class Withheld(Protocol):
    """Inputs of which a worker sees nothing, or not all, before a call starts."""

    def cover(self) -> None:
        """The worker is about to get ready for the call."""
        ...

    def lift(self) -> None:
        """The call starts: all inputs lie there."""
        ...


class Staged:
    """The bytes `first` to `last` of the judge's own `staging`, for the same place in `arena`."""

    def __init__(self, arena: torch.Tensor, staging: torch.Tensor, first: int, last: int) -> None:
        self._arena = arena[first:last].numpy()
        self._staging = staging[first:last].numpy()

    def cover(self) -> None:
        """Nothing of them is there."""

    def lift(self) -> None:
        """Copied on one thread: PyTorch's pool would spin on the worker's processors."""
        np.copyto(self._arena, self._staging)


class Veil:
    """Chosen lines of `memory` (uint8, shape [size]) within `spans` (first byte, bytes).

    Spans start at multiples of 64 bytes and may be padded to them.
    """

    def __init__(self, memory: torch.Tensor, spans: list[tuple[int, int]]) -> None:
        whole = memory.numel() // LINE_BYTES * LINE_BYTES
        self._lines = memory[:whole].view(torch.int64).view(-1, LINE_BYTES // 8)
        chosen, others, lone = [], [], []
        total = sum(-(-size // LINE_BYTES) for _, size in spans)
        generator = torch.Generator().manual_seed(secrets.randbits(62))
        for start, size in spans:
            count = -(-size // LINE_BYTES)
            if count == 0:
                continue
            wanted = max(1, _MOST_LINES * count // max(total, _MOST_LINES))
            if wanted >= count:
                places = torch.arange(count)
            else:
                places = torch.randint(count, (wanted,), generator=generator).unique()
            step = 1 + secrets.randbelow(count - 1) if count > 1 else 0
            chosen.append(places + start // LINE_BYTES)
            others.append((places + step) % count + start // LINE_BYTES)
            lone.append(torch.full(places.shape, count == 1))
        device = memory.device
        none = [torch.zeros(0, dtype=torch.int64)]
        self._places = torch.cat(chosen or none).to(device)
        self._true = self._lines[self._places]
        self._false = self._lines[torch.cat(others or none).to(device)]
        # A tensor of one line has no other line to show: it shows zeros.
        self._false[torch.cat(lone or [none[0].bool()]).to(device)] = 0

    def cover(self) -> None:
        """Put other lines of the same tensors in place of the chosen ones."""
        self._lines[self._places] = self._false

    def lift(self) -> None:
        """Put the true lines there; on a GPU this is done when the call returns."""
        self._lines[self._places] = self._true
        if self._lines.is_cuda:
            torch.cuda.synchronize(self._lines.device)


@dataclass(frozen=True)
class Laid:
    """The arguments of one call, in the form that a worker gets, and their tensors."""

    arguments: list[Any]
    tensors: Withheld


def stage(arena: torch.Tensor, placement: Placement, values: list[Any]) -> Laid:
    """Arguments laid into memory of the judge's own, for the same places in an arena."""
    arguments = [placement.place(value) for value in values]
    return Laid(arguments, Staged(arena, placement.memory, placement.first, placement.last))


def lay(placement: Placement, values: list[Any]) -> Laid:
    """Arguments laid into an arena, with a veil over their tensors."""
    arguments = [placement.place(value) for value in values]
    return Laid(arguments, Veil(placement.memory, placement.spans))
