"""The arguments of a call, whose tensors reach the memory that workers map when the call starts.

Until then the judge keeps them in memory of its own, so that a worker sees nothing of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from evaluator.judge.inputs.placement import Placement


class MappedArguments:
    """The arguments of one call, in the form that a worker gets. Their tensors lie where it reads
    them already: for workers of which nothing is hidden."""

    size = 0
    """Bytes that are yet to be laid."""
    is_spent = False
    """Whether they cannot be laid any more."""

    def __init__(self, arguments: list[Any]) -> None:
        self.arguments = arguments

    def lay(self) -> None:
        """The call starts: see that the tensors lie where the worker reads them. On a GPU this may
        still be under way on the current stream afterwards."""


class Staged(MappedArguments):
    """Tensors in memory of the judge's own, for the same places in an arena."""

    def __init__(self, arguments: list[Any], arena: torch.Tensor, placed: Placement) -> None:
        super().__init__(arguments)
        self._arena = arena[placed.first : placed.last]
        self._staging = placed.memory[placed.first : placed.last]
        self.size = placed.last - placed.first

    def lay(self) -> None:
        """On a CPU on one thread: PyTorch's pool would spin on the worker's processors."""
        if self._arena.is_cuda:
            self._arena.copy_(self._staging, non_blocking=True)
        else:
            np.copyto(self._arena.numpy(), self._staging.numpy())


class Unstaged(MappedArguments):
    """Large tensors, which are kept as they were made, and laid once: then their memory is free."""

    def __init__(
        self, arguments: list[Any], arena: torch.Tensor, placed: Placement, values: list[Any]
    ) -> None:
        """`placed`: where they will lie; its memory has no values."""
        super().__init__(arguments)
        self._arena = arena
        self._placed = placed
        self._values = values
        self.size = placed.last - placed.first

    def lay(self) -> None:
        """Raises AssertionError the second time."""
        assert not self.is_spent, "the inputs are gone"
        there = self._placed.again(self._arena)
        for value in self._values:
            there.place(value)
        self._values = []
        self.is_spent = True


def stage(arena: torch.Tensor, placement: Placement, values: list[Any]) -> MappedArguments:
    """Arguments laid into memory of the judge's own, for the same places in an arena; into none
    where `placement` has memory without values."""
    arguments = [placement.place(value) for value in values]
    if placement.memory.is_meta:
        return Unstaged(arguments, arena, placement, values)
    return Staged(arguments, arena, placement)


def lay(placement: Placement, values: list[Any]) -> MappedArguments:
    """Arguments laid right where a worker reads them, before its call."""
    return MappedArguments([placement.place(value) for value in values])
