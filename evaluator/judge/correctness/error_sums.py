"""How far off an output is, row by row and column by column: sums over blocks of whole rows.

In K (candidate), L (reference) and R (fp64 reference), as `accept_rule` has them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from evaluator.judge.correctness.accept_rule import Rule


@dataclass
class ErrorSums:
    """Sums over some set of elements: squares of K-R, L-R and R, and the largest deviations."""

    k: Tensor
    l: Tensor  # noqa: E741 - the rule is stated in K, L and R
    r: Tensor
    worst_l: Tensor
    excess: Tensor
    """Largest |K-R| - r|R|."""

    @classmethod
    def zeros(cls, device: torch.device, *shape: int) -> ErrorSums:
        zero = torch.zeros((), dtype=torch.float64, device=device)
        return cls(*(zero.expand(shape) for _ in range(5)))

    @classmethod
    def joined(cls, parts: Sequence[ErrorSums]) -> ErrorSums:
        """Those of rows of which each part has some."""
        fields = ((part.k, part.l, part.r, part.worst_l, part.excess) for part in parts)
        return cls(*map(torch.cat, zip(*fields, strict=True)))

    def add(self, other: ErrorSums) -> None:
        """Those of more elements of the same rows, or columns, come on top."""
        self.k = self.k + other.k
        self.l = self.l + other.l
        self.r = self.r + other.r
        self.worst_l = torch.maximum(self.worst_l, other.worst_l)
        self.excess = torch.maximum(self.excess, other.excess)

    def total(self) -> ErrorSums:
        sums = (self.k.sum(), self.l.sum(), self.r.sum())
        return ErrorSums(*sums, self.worst_l.amax(), self.excess.amax())

    def shares(
        self, count: int, law: Rule, room: float, of_one: float, of_zeros: float
    ) -> tuple[Tensor, Tensor]:
        """How much of what is allowed each row of `count` elements uses, and its worst element.

        `room`: for noise, on top of what the rule allows a row; `of_one`, an element; `of_zeros`,
        the same for a row of zeros.
        """
        error, reference, rms = (torch.sqrt(s / count) for s in (self.k, self.l, self.r))
        more = torch.where(self.r == 0, of_zeros, 0.0)
        by_rmse = 4 * law.allowed(reference, rms) + more.clamp(min=room)
        by_element = self.element_limit(count, law) + more.clamp(min=of_one)
        return _share(error, by_rmse), _share(self.excess.clamp(min=0), by_element)

    def element_limit(self, count: int, law: Rule) -> Tensor:
        """How far one element of each row may be off, besides the part r of its own size."""
        return 2 * law.multiple * self.worst_l + 8 * law.floor * torch.sqrt(self.r / count)


def _share(error: Tensor, limit: Tensor) -> Tensor:
    return torch.where(error == 0, 0.0, error / limit).nan_to_num(math.inf, math.inf)


def chunk(t: Tensor) -> int:
    """Elements of `t` to be looked at together."""
    # On a CPU the handful of fp64 copies should stay in the caches.
    on_cpu: bool = t.device.type == "cpu"
    return 2**17 if on_cpu else 2**24


def blocks(
    matrix: tuple[Tensor, Tensor, Tensor], law: Rule, with_columns: bool
) -> Iterator[tuple[ErrorSums, ErrorSums | None, Tensor]]:
    """Sums by row (and by column) for one block of whole rows after another.

    Each step holds a few fp64 copies of one chunk, never of an output.
    """
    rows, columns = matrix[0].shape
    step = max(1, chunk(matrix[0]) // columns)
    for top in range(0, rows, step):
        block = tuple(t[top : top + step] for t in matrix)
        if columns <= chunk(matrix[0]):
            yield _sums(block, law, with_columns)
            continue
        row, _, misplaced = _sums(tuple(t[:, : chunk(t)] for t in block), law, False)
        for left in range(chunk(matrix[0]), columns, chunk(matrix[0])):
            part = tuple(t[:, left : left + chunk(matrix[0])] for t in block)
            more, _, also = _sums(part, law, False)
            row.add(more)
            misplaced |= also
        yield row, None, misplaced


def _sums(
    block: tuple[Tensor, ...], law: Rule, with_columns: bool
) -> tuple[ErrorSums, ErrorSums | None, Tensor]:
    low_k, low_l, any_r = block
    any_r = any_r.to(low_k.device)
    k, reference, r = low_k.double(), low_l.double(), any_r.double()
    misplaced = torch.zeros((), dtype=torch.bool, device=k.device)
    off_k = k - r
    off_l = reference - r if law.assumed_error is None else r * law.assumed_error
    if not bool(torch.isfinite(off_k.sum() + off_l.sum())):
        rounded = any_r.to(low_k.dtype)
        misplaced = (~(_same_class(low_k, rounded) | _same_class(low_k, low_l))).any()
        off_k = torch.where(torch.isfinite(off_k), off_k, 0.0)
        off_l = torch.where(torch.isfinite(off_l), off_l, 0.0)
        r = torch.where(torch.isfinite(rounded), r, 0.0)
    worst, size_r = off_l.abs(), r.abs()
    excess = torch.sub(off_k.abs(), size_r, alpha=law.element)
    squares = (off_k.square_(), off_l.square_(), size_r.square_())
    by_row = _reduced(squares, worst, excess, 1)
    by_column = _reduced(squares, worst, excess, 0) if with_columns else None
    return by_row, by_column, misplaced


def _reduced(
    squares: tuple[Tensor, Tensor, Tensor], worst: Tensor, excess: Tensor, dim: int
) -> ErrorSums:
    k, reference, r = (s.sum(dim) for s in squares)
    return ErrorSums(k, reference, r, worst.amax(dim), excess.amax(dim))


def _same_class(a: Tensor, b: Tensor) -> Tensor:
    return (torch.isfinite(a) & torch.isfinite(b)) | (a == b) | (torch.isnan(a) & torch.isnan(b))
