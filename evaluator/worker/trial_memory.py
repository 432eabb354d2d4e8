"""Memory as KernelBench's process holds it in its correctness trials.

A module may keep addresses of memory that is freed when it is moved. Whether it is right then
depends on what takes that memory next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from evaluator.worker.values import decode


class TrialMemory:
    """Inputs come from PyTorch's allocator, before both modules are moved; both outputs stay until
    those of the next trial replace them, and comparing them takes memory."""

    def __init__(self) -> None:
        self._where: list[int] | None = None
        self._pairs: list[tuple[torch.Tensor, torch.Tensor]] = []
        self.expected: list[torch.Tensor] = []
        self._actual: list[torch.Tensor] = []

    def inputs(self, values: Sequence[Any], memory: torch.Tensor) -> list[Any]:
        """Arguments whose tensors hold what is in `memory` once `fill` was called.

        Where it lies elsewhere than in the first trial, they are taken from there: addresses are
        to differ for the module, too.
        """
        self._pairs = []

        def own(given: torch.Tensor) -> torch.Tensor:
            self._pairs.append((torch.empty_like(given), given))
            return self._pairs[-1][0]

        arguments = [decode(value, memory, own) for value in values]
        where = [given.data_ptr() for _, given in self._pairs]
        self._where = self._where or where
        if where != self._where:
            self._pairs = []
            return [decode(value, memory, lambda given: given) for value in values]
        return arguments

    def fill(self) -> None:
        for mine, given in self._pairs:
            mine.copy_(given)

    def compare(self, outputs: list[torch.Tensor]) -> None:
        """Take the memory that comparing takes; what it says is for the judge to find out."""
        self._actual = outputs
        for one, other in zip(self.expected, outputs, strict=False):
            if type(other) is torch.Tensor and (one.shape, one.dtype) == (other.shape, other.dtype):
                torch.allclose(one, other)
