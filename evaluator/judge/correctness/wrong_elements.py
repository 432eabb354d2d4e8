"""The wrong elements of an output, as the recognisers of mistakes see them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

Detail = dict[str, float | int | str]
"""What a pattern rests on."""


def indices(flat: Tensor, shape: Sequence[int]) -> list[Tensor]:
    """Of positions in row-major order, by dimension. `torch.unravel_index` imports SymPy first."""
    return [flat // math.prod(shape[dim + 1 :]) % size for dim, size in enumerate(shape)]


@dataclass(frozen=True)
class Wrong:
    """The wrong elements: how many, and an even sample of them in fp64 on the CPU."""

    count: int
    flat: Tensor
    """int64, positions in row-major order, ascending."""
    actual: Tensor
    expected: Tensor
    allowed: Tensor | None
    """How far each may be off, where a rule says it."""
    max_abs_error: float
    """Over the elements where both are finite, like `max_rel_error`."""
    max_rel_error: float
    shown: tuple[tuple[int, float, float], ...]
    """Position, expected and actual value of the first ones, then of the worst ones."""
