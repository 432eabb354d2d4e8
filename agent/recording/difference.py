"""How far two results of a module are apart."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

_CLOSE = {torch.float16: 1e-2, torch.bfloat16: 2e-2}
_CLOSE_ELSE = 2e-3
"""How far they may be apart, by their norm: the judge has compared them finely."""


def difference(before: Sequence[Tensor], after: Sequence[Tensor]) -> tuple[float, float]:
    """The largest one, and what is allowed; of what can't be compared NaN."""
    if not before or [(a.shape, a.dtype) for a in after] != [(b.shape, b.dtype) for b in before]:
        return float("nan"), 0.0
    found = (_distance(one, other) for one, other in zip(after, before, strict=True))
    # One that is NaN comes first.
    return max(found, key=lambda each: each[0] / each[1] if each[0] == each[0] else math.inf)


def _distance(one: Tensor, other: Tensor) -> tuple[float, float]:
    """Of two results, relative to the norm of the other one; and what is allowed."""
    alike = (one == other) | ((one != one) & (other != other))
    a, b = (torch.where(alike & ~other.isfinite(), 0, x) for x in (one, other))
    a, b = (x if x.is_complex() else x.double() for x in (a, b))
    off = float((a - b).norm() / b.norm().clamp(min=1e-300))
    return off, _CLOSE.get(other.dtype, _CLOSE_ELSE)
