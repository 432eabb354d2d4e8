"""The arguments of a call, whose tensors reach the memory that workers map when the call starts.

Until then the judge keeps them in memory of its own, so that a worker sees nothing of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch

from evaluator.judge.placement import Placement


class Inputs(Protocol):
    """The tensors among the arguments of a call."""

    @property
    def size(self) -> int:
        """Bytes that are yet to be laid."""
        ...

    @property
    def from_host(self) -> bool:
        """Whether they reach a GPU from the host's memory: how long that takes differs by more than
        any work that a candidate could do meanwhile."""
        ...

    def lay(self) -> None:
        """The call starts: see that they lie where the worker reads them. On a GPU this may still
        be under way on the current stream afterwards."""
        ...


class Open:
    """Inputs that lie there already, for workers of which nothing is hidden."""

    size = 0
    from_host = False

    def lay(self) -> None:
        """Nothing is left to do."""


class Staged:
    """The bytes `first` to `last` of the judge's own `staging`, for the same place in `arena`."""

    def __init__(self, arena: torch.Tensor, staging: torch.Tensor, first: int, last: int) -> None:
        self._arena = arena[first:last]
        self._staging = staging[first:last]
        self.size = last - first
        self.from_host = arena.is_cuda and not staging.is_cuda

    def lay(self) -> None:
        """On a CPU on one thread: PyTorch's pool would spin on the worker's processors."""
        if self._arena.is_cuda:
            self._arena.copy_(self._staging, non_blocking=True)
        else:
            np.copyto(self._arena.numpy(), self._staging.numpy())


@dataclass(frozen=True)
class Laid:
    """The arguments of one call, in the form that a worker gets, and their tensors."""

    arguments: list[Any]
    tensors: Inputs


def stage(arena: torch.Tensor, placement: Placement, values: list[Any]) -> Laid:
    """Arguments laid into memory of the judge's own, for the same places in an arena."""
    arguments = [placement.place(value) for value in values]
    return Laid(arguments, Staged(arena, placement.memory, placement.first, placement.last))


def lay(placement: Placement, values: list[Any]) -> Laid:
    """Arguments laid right where a worker reads them, before its call."""
    return Laid([placement.place(value) for value in values], Open())
