"""The arguments of a call, whose tensors reach the memory that workers map when the call starts.

Until then the judge keeps them in memory of its own, so that a worker sees nothing of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from evaluator.judge.inputs.placement import Placement


class MappedArguments:
    def __init__(self, arena: torch.Tensor, placed: Placement, values: list[Any]) -> None:
        """`placed`: lays tensors into memory of the judge's own, for the same places in `arena`.

        Where that memory has no values, because the tensors are large, they are kept as they were
        made, and laid once: then their memory is free.
        """
        self.arguments = [placed.place(value) for value in values]
        self.is_spent = False
        """Whether they cannot be laid any more."""
        self._arena = arena
        self._placed = placed
        self._values = values if placed.memory.is_meta else []

    def holds(self, *, around: bool = False) -> bool:
        """Whether the tensors, or all around them, lie there as they were laid last, if the judge
        keeps that."""
        spans = [(first, first + size) for first, size in sorted(self._placed.spans)]
        if around:
            ends = [self._placed.first, *(end for _, end in spans)]
            spans = list(
                zip(ends, [*(first for first, _ in spans), self._placed.last], strict=True)
            )
        laid = self._placed.memory
        return laid.is_meta or all(torch.equal(self._arena[a:b], laid[a:b]) for a, b in spans)

    def lay(self) -> None:
        """The call starts: see that the tensors lie where the worker reads them. On a GPU this may
        still be under way on the current stream afterwards."""
        staging = self._placed.memory[self._placed.first : self._placed.last]
        arena = self._arena[self._placed.first : self._placed.last]
        if staging.is_meta:
            assert not self.is_spent, "the inputs are gone"
            there = self._placed.again(self._arena)
            for value in self._values:
                there.place(value)
            self._values = []
            self.is_spent = True
        elif arena.is_cuda:
            arena.copy_(staging, non_blocking=True)
        else:
            # On one thread: PyTorch's pool would spin on the worker's processors.
            np.copyto(arena.numpy(), staging.numpy())
