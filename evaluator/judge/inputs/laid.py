"""The arguments of a call, whose tensors reach the memory that workers map when the call starts.

Until then the judge keeps them in memory of its own, so that a worker sees nothing of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch

from evaluator.judge.inputs.placement import Placement


class Inputs(Protocol):
    """The tensors among the arguments of a call."""

    @property
    def size(self) -> int:
        """Bytes that are yet to be laid."""
        ...

    @property
    def is_spent(self) -> bool:
        """Whether they cannot be laid any more."""
        ...

    def lay(self) -> None:
        """The call starts: see that they lie where the worker reads them. On a GPU this may still
        be under way on the current stream afterwards."""
        ...


class Open:
    """Inputs that lie there already, for workers of which nothing is hidden."""

    size = 0
    is_spent = False

    def lay(self) -> None:
        """Nothing is left to do."""


class Staged:
    """The bytes `first` to `last` of the judge's own `staging`, for the same place in `arena`."""

    is_spent = False

    def __init__(self, arena: torch.Tensor, staging: torch.Tensor, first: int, last: int) -> None:
        self._arena = arena[first:last]
        self._staging = staging[first:last]
        self.size = last - first

    def lay(self) -> None:
        """On a CPU on one thread: PyTorch's pool would spin on the worker's processors."""
        if self._arena.is_cuda:
            self._arena.copy_(self._staging, non_blocking=True)
        else:
            np.copyto(self._arena.numpy(), self._staging.numpy())


class Unstaged:
    """Large tensors, which are kept as they were made, and laid once."""

    def __init__(self, arena: torch.Tensor, placed: Placement, values: list[Any]) -> None:
        """`placed`: where they will lie; its memory has no values."""
        self._arena = arena
        self._placed = placed
        self._values: list[Any] | None = values
        self.size = placed.last - placed.first

    @property
    def is_spent(self) -> bool:
        """Their memory is free again once they lie there."""
        return self._values is None

    def lay(self) -> None:
        """Raises AssertionError the second time."""
        assert self._values is not None, "the inputs are gone"
        there = self._placed.again(self._arena)
        for value in self._values:
            there.place(value)
        self._values = None


@dataclass(frozen=True)
class Laid:
    """The arguments of one call, in the form that a worker gets, and their tensors."""

    arguments: list[Any]
    tensors: Inputs


def stage(arena: torch.Tensor, placement: Placement, values: list[Any]) -> Laid:
    """Arguments laid into memory of the judge's own, for the same places in an arena; into none
    where `placement` has memory without values."""
    arguments = [placement.place(value) for value in values]
    if placement.memory.is_meta:
        return Laid(arguments, Unstaged(arena, placement, values))
    return Laid(arguments, Staged(arena, placement.memory, placement.first, placement.last))


def lay(placement: Placement, values: list[Any]) -> Laid:
    """Arguments laid right where a worker reads them, before its call."""
    return Laid([placement.place(value) for value in values], Open())
