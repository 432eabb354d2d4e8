"""Is what the candidate returned what an honest implementation would return?

The rule, in K (candidate), L (reference) and R (fp64 reference), is stated in `accept_rule`.
Outputs are walked in chunks; no fp64 copy of a whole output is ever made.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from evaluator.evaluation import Mismatch, Precision
from evaluator.judge.accept_rule import Rule, rule
from evaluator.judge.error_sums import ErrorSums, blocks, chunk
from evaluator.judge.mismatch import Allowance, describe, structural
from evaluator.judge.ties import tied

ROW = 64
"""Fewest elements in a row: with fewer, L's error could be nil by luck."""
KERNELBENCH_TOLERANCE = {
    Precision.FP32: 1e-4,
    Precision.TF32: 1e-4,
    Precision.FP16: 1e-2,
    Precision.BF16: 1e-2,
}


@dataclass(frozen=True)
class OutputVerdict:
    """Whether all outputs of one call are right, and how far off they were."""

    ok: bool
    error_ratio: float | None
    """Worst RMSE(K-R) over the larger of RMSE(L-R) and floor/m; None without floating outputs."""
    error_ratio_limit: float | None
    mismatch: Mismatch | None
    """Of the first output that is wrong."""


def compare(
    actual: Sequence[Tensor],
    expected: Sequence[Tensor],
    exact: Sequence[Tensor] | None,
    inputs: Sequence[Tensor],
    precision: Precision,
    *,
    protocol: Literal["refinery", "kernelbench"] = "refinery",
    accumulation: int | None = None,
    poison: bytes | int | None = None,
    multiple: float | None = None,
) -> OutputVerdict:
    """Judge the outputs of one call.

    Args:
        actual: K, the candidate's outputs, flattened; Python scalars as 0-dim tensors. Without
            values (on the meta device) where any shape or dtype is wrong.
        expected: L, the reference's outputs in the task's precision, on the same device.
        exact: R, the same from an fp64 reference (floating ones in fp64, any device), or None.
        inputs: the call's flattened input tensors: for ties, and to recognise copies.
        precision: the task's precision.
        protocol: `kernelbench` is `torch.allclose` at KernelBench's tolerances instead.
        accumulation: longest sum behind one output element (`Work.accumulation`); None: guessed
            from the shapes.
        poison: what the output slots were filled with before the call, as bytes that repeat.
        multiple: m, in place of the rule's.
    """
    if len(actual) != len(expected):
        return OutputVerdict(
            False,
            None,
            None,
            Mismatch(output=0, kind="count", wrong=len(actual), total=len(expected)),
        )
    if exact is not None and len(exact) != len(expected):
        raise ValueError("the fp64 reference has another number of outputs than the reference")
    verdict = OutputVerdict(True, None, None, None)
    # All forms first: where one is wrong, none of the values has been read (`Side.outputs`).
    for index, (k, reference) in enumerate(zip(actual, expected, strict=True)):
        mismatch = structural(index, k, reference)
        if mismatch is not None:
            return replace(verdict, ok=False, mismatch=mismatch)
    for index, (k, reference) in enumerate(zip(actual, expected, strict=True)):
        if k.numel() == 0:
            continue
        r = None if exact is None else exact[index]
        if not (k.is_floating_point() or k.is_complex()):
            mismatch = _compare_integers(index, k, reference, r, inputs, poison)
        elif protocol == "kernelbench":
            mismatch = _compare_allclose(index, k, reference, inputs, precision, poison)
        else:
            n = accumulation or _longest_accumulation(inputs, k)
            law = rule(precision, k.dtype, k.numel(), n, assumed=r is None)
            if multiple is not None:
                law = replace(law, multiple=multiple)
            one = _compare_floats(index, k, reference, r, inputs, law, poison)
            mismatch = one.mismatch
            if verdict.error_ratio is None or _worse(one, verdict):
                verdict = replace(
                    verdict, error_ratio=one.error_ratio, error_ratio_limit=one.error_ratio_limit
                )
        if mismatch is not None:
            return replace(verdict, ok=False, mismatch=mismatch)
    return verdict


def _worse(one: OutputVerdict, other: OutputVerdict) -> bool:
    assert one.error_ratio is not None and one.error_ratio_limit is not None
    assert other.error_ratio is not None and other.error_ratio_limit is not None
    return one.error_ratio / one.error_ratio_limit > other.error_ratio / other.error_ratio_limit


def _longest_accumulation(inputs: Sequence[Tensor], output: Tensor) -> int:
    longest: int = max((max(t.shape, default=1) for t in inputs), default=1)
    total = sum(t.numel() for t in inputs)
    return int(max(1, longest, total // output.numel()))


def _compare_integers(
    index: int,
    k: Tensor,
    reference: Tensor,
    r: Tensor | None,
    inputs: Sequence[Tensor],
    poison: bytes | int | None,
) -> Mismatch | None:
    wrong = k != reference
    if r is not None:
        wrong &= k != r.to(k.device)
    if not bool(wrong.any()):
        return None
    if k.dtype is not torch.bool and tied(k, reference, wrong, inputs):
        return None
    return describe(index, k, reference, wrong=wrong, inputs=inputs, poison=poison)


def _compare_allclose(
    index: int,
    k: Tensor,
    reference: Tensor,
    inputs: Sequence[Tensor],
    precision: Precision,
    poison: bytes | int | None,
) -> Mismatch | None:
    tolerance = KERNELBENCH_TOLERANCE[precision]
    flat_k, flat_l = k.reshape(-1), reference.reshape(-1)
    wrong = torch.empty(k.numel(), dtype=torch.bool, device=k.device)
    for start in range(0, k.numel(), chunk(k)):
        stop = start + chunk(k)
        close = torch.isclose(
            flat_k[start:stop], flat_l[start:stop], rtol=tolerance, atol=tolerance
        )
        torch.logical_not(close, out=wrong[start:stop])
    if not bool(wrong.any()):
        return None
    wrong = wrong.reshape(k.shape)
    return describe(index, k, reference, wrong=wrong, inputs=inputs, poison=poison)


def _columns(shape: Sequence[int]) -> int:
    """Length of a row: the product of as few trailing dimensions as hold `ROW` elements."""
    columns = 1
    for size in reversed(shape):
        if columns >= ROW:
            break
        columns *= size
    return columns


def _compare_floats(
    index: int,
    k: Tensor,
    reference: Tensor,
    r: Tensor | None,
    inputs: Sequence[Tensor],
    law: Rule,
    poison: bytes | int | None,
) -> OutputVerdict:
    if k.is_complex():
        k, reference = torch.view_as_real(k), torch.view_as_real(reference)
        r = None if r is None else torch.view_as_real(r)
    if r is None:
        r = reference
    elif r.shape != reference.shape:
        raise ValueError("the fp64 reference has another shape than the reference")
    columns = _columns(k.shape)
    rows = k.numel() // columns
    matrix = (k.reshape(rows, columns), reference.reshape(rows, columns), r.reshape(rows, columns))

    zero = torch.zeros((), dtype=torch.float64, device=k.device)
    whole = ErrorSums(zero, zero, zero, zero, zero)
    by_column = ErrorSums(*(zero.expand(columns) for _ in range(5))) if rows >= ROW else None
    misplaced = torch.zeros((), dtype=torch.bool, device=k.device)
    # How much more than its own allowance some row needs, among rows with values and rows of zeros.
    needed, needed_by_zeros, reference_row_error = zero - 1, zero - 1, zero
    for row_sums, column_sums, block_misplaced in blocks(matrix, law, by_column is not None):
        misplaced |= block_misplaced
        whole.add(row_sums.total())
        if by_column is not None and column_sums is not None:
            by_column.add(column_sums)
        need = row_sums.need(columns, law)
        empty = row_sums.r == 0
        needed = torch.maximum(needed, need.masked_fill(empty, -1.0).amax())
        needed_by_zeros = torch.maximum(needed_by_zeros, need.masked_fill(~empty, -1.0).amax())
        relative = torch.sqrt(row_sums.l / row_sums.r.masked_fill(empty, 1.0))
        reference_row_error = torch.maximum(
            reference_row_error, relative.masked_fill(empty, 0.0).amax()
        )

    count = k.numel()
    error, reference_error, rms = (math.sqrt(float(s) / count) for s in (whole.k, whole.l, whole.r))
    limit = float(law.allowed(torch.tensor(reference_error), torch.tensor(rms)))
    ratio_limit = law.multiple
    if reference_error > 0 and limit < law.multiple * reference_error:
        ratio_limit = limit / reference_error
    scale = limit / ratio_limit
    ratio = error / scale if scale > 0 else (0.0 if error == 0 else math.inf)

    # Noise that does not follow a row's own scale is excused as far as the reference shows it.
    shared = law.multiple * reference_error if reference_row_error > 16 * law.floor else 0.0
    ok = (
        not bool(misplaced)
        and error <= limit
        and float(needed) <= shared
        and float(needed_by_zeros) <= max(shared, 2 * law.round_off * rms)
    )
    if ok and by_column is not None:
        need = by_column.need(rows, law)
        spare = torch.where(by_column.r == 0, 2 * law.round_off * rms, 0.0).clamp(min=shared)
        ok = bool((need <= spare).all())
    if ok:
        return OutputVerdict(True, ratio, ratio_limit, None)
    absolute = _absolute_limits(matrix, law, shared)
    allowance = Allowance(absolute, law.element)
    mismatch = describe(index, k, r, allowance=allowance, inputs=inputs, poison=poison)
    return OutputVerdict(False, ratio, ratio_limit, mismatch)


def _absolute_limits(matrix: tuple[Tensor, Tensor, Tensor], law: Rule, shared: float) -> Tensor:
    """Each row's limit for one element, less the part that follows the element. Shape (rows, 1)."""
    columns = matrix[0].shape[1]
    limits = [
        2 * law.multiple * sums.worst_l + 8 * law.floor * torch.sqrt(sums.r / columns) + shared
        for sums, _, _ in blocks(matrix, law, False)
    ]
    return torch.cat(limits).unsqueeze(1)
