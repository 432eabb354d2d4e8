"""The sums of `error_sums` on a GPU, in one pass over the three tensors.

PyTorch's operators make a dozen passes and take ten times as long. Loaded only where there is a GPU
and Triton, which comes with PyTorch there.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from evaluator.judge.correctness.accept_rule import Rule
from evaluator.judge.correctness.error_sums import ErrorSums

_WIDEST_TILE = 512
_TILE = 2048
"""Elements that one program looks at together."""
_PROGRAMS = 4096
"""Programs that share the work, about; each goes on over the rows below its first ones."""


def fused_error_sums(
    matrix: tuple[Tensor, Tensor, Tensor], law: Rule, with_columns: bool
) -> tuple[ErrorSums, ErrorSums | None] | None:
    """Sums by row and by column of K, L and R, all of shape (rows, columns).

    An excess below zero counts as zero, which changes no verdict. None where a difference is not
    finite: such elements are compared by their kind, one block at a time (`error_sums.blocks`).
    """
    # A strided output may have become a matrix without a copy.
    k, reference, right = (tensor.contiguous() for tensor in matrix)
    rows, columns = k.shape
    width = min(_WIDEST_TILE, triton.next_power_of_2(columns))
    height = _TILE // width
    across = triton.cdiv(columns, width)
    down = max(1, min(triton.cdiv(rows, height), _PROGRAMS // across))
    by_row = _Sums(rows, k.device)
    by_column = _Sums(columns if with_columns else 1, k.device)
    unusual = torch.zeros(1, dtype=torch.int32, device=k.device)
    with torch.cuda.device(k.device):
        _add_up[(across, down)](
            *(k, reference, right),
            *(by_row.squares, by_row.largest, by_column.squares, by_column.largest, unusual),
            *(rows, columns, triton.cdiv(triton.cdiv(rows, height), down)),
            *(law.element, law.assumed_error or 0.0),
            with_columns,
            height,
            width,
        )
    if int(unusual):
        return None
    return by_row.error_sums(), by_column.error_sums() if with_columns else None


class _Sums:
    """Sums of squares of K-R, L-R and R, and the largest |L-R| and excess, as bits of fp64."""

    def __init__(self, count: int, device: torch.device) -> None:
        self.squares = torch.zeros((3, count), dtype=torch.float64, device=device)
        self.largest = torch.zeros((2, count), dtype=torch.int64, device=device)

    def error_sums(self) -> ErrorSums:
        return ErrorSums(*self.squares, *self.largest.view(torch.float64))


@triton.jit(do_not_specialize=["rows", "columns", "steps"])  # type: ignore[untyped-decorator]
def _add_up(  # type: ignore[no-untyped-def] # Triton reads annotations as its own
    k_pointer,
    l_pointer,
    r_pointer,
    row_squares,
    row_largest,
    column_squares,
    column_largest,
    unusual,
    rows,
    columns,
    steps,
    element,
    assumed_error,
    WITH_COLUMNS: tl.constexpr,  # noqa: N803 - as Triton writes what it compiles in
    HEIGHT: tl.constexpr,  # noqa: N803
    WIDTH: tl.constexpr,  # noqa: N803
):
    column = tl.program_id(0).to(tl.int64) * WIDTH + tl.arange(0, WIDTH)
    in_width = column < columns
    first = tl.program_id(1).to(tl.int64) * steps * HEIGHT
    zero = tl.zeros((WIDTH,), tl.float64)
    sum_k, sum_l, sum_r, most_l, most_excess = zero, zero, zero, zero, zero
    finite = tl.zeros((HEIGHT, WIDTH), tl.int32) == 0
    for step in range(steps):
        row = first + step * HEIGHT + tl.arange(0, HEIGHT)
        in_height = row < rows
        there = in_height[:, None] & in_width[None, :]
        place = row[:, None] * columns + column[None, :]
        k = tl.load(k_pointer + place, mask=there, other=0.0).to(tl.float64)
        reference = tl.load(l_pointer + place, mask=there, other=0.0).to(tl.float64)
        r = tl.load(r_pointer + place, mask=there, other=0.0).to(tl.float64)
        off_k = k - r
        off_l = reference - r + assumed_error * r
        finite = finite & (off_k - off_k == 0.0) & (off_l - off_l == 0.0)
        worst = tl.abs(off_l)
        excess = tl.maximum(tl.abs(off_k) - element * tl.abs(r), 0.0)
        squares_k, squares_l, squares_r = off_k * off_k, off_l * off_l, r * r
        tl.atomic_add(row_squares + row, tl.sum(squares_k, 1), mask=in_height)
        tl.atomic_add(row_squares + rows + row, tl.sum(squares_l, 1), mask=in_height)
        tl.atomic_add(row_squares + 2 * rows + row, tl.sum(squares_r, 1), mask=in_height)
        bits = tl.max(worst, 1).to(tl.int64, bitcast=True)
        tl.atomic_max(row_largest + row, bits, mask=in_height)
        bits = tl.max(excess, 1).to(tl.int64, bitcast=True)
        tl.atomic_max(row_largest + rows + row, bits, mask=in_height)
        if WITH_COLUMNS:
            sum_k += tl.sum(squares_k, 0)
            sum_l += tl.sum(squares_l, 0)
            sum_r += tl.sum(squares_r, 0)
            most_l = tl.maximum(most_l, tl.max(worst, 0))
            most_excess = tl.maximum(most_excess, tl.max(excess, 0))
    if WITH_COLUMNS:
        tl.atomic_add(column_squares + column, sum_k, mask=in_width)
        tl.atomic_add(column_squares + columns + column, sum_l, mask=in_width)
        tl.atomic_add(column_squares + 2 * columns + column, sum_r, mask=in_width)
        bits = most_l.to(tl.int64, bitcast=True)
        tl.atomic_max(column_largest + column, bits, mask=in_width)
        bits = most_excess.to(tl.int64, bitcast=True)
        tl.atomic_max(column_largest + columns + column, bits, mask=in_width)
    if tl.min(finite.to(tl.int32)) == 0:
        tl.atomic_add(unusual, 1)
