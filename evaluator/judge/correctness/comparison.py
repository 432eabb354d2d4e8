"""Is what the candidate returned what an honest implementation would return?

The rule, in K (candidate), L (reference) and R (fp64 reference), is stated in `accept_rule`.
Outputs are walked in chunks; no fp64 copy of a whole output is ever made.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec

import torch
from torch import Tensor

from evaluator.evaluation import Mismatch
from evaluator.judge.correctness.accept_rule import Rule, rule
from evaluator.judge.correctness.error_sums import ErrorSums, blocks, chunk
from evaluator.judge.correctness.mismatch import Allowance, describe, structural
from evaluator.judge.correctness.ties import tied
from evaluator.settings import Precision

ROW = 64
"""Fewest elements in a row: with fewer, L's error could be nil by luck."""
_WORTH_A_KERNEL = 2**20
"""Elements from which a kernel of our own is compiled, which takes a second, once."""


@dataclass(frozen=True)
class OutputVerdict:
    """Whether all outputs of one call are right, and how far off they were."""

    ok: bool
    error_ratio: float | None
    """Worst RMSE(K-R) over the larger of RMSE(L-R) and floor/m; None without floating outputs."""
    error_ratio_limit: float | None
    mismatch: Mismatch | None
    """Of the first output that is wrong; None for wrong values that are not to be described."""
    excusable: bool = False
    """It is wrong, but another reference, no worse than it may be, could allow it."""
    reference_errors: tuple[float | None, ...] = ()
    """RMSE(L-R) over rms(R) of each output; None where R says nothing of it: for zeros, integers,
    booleans and empty outputs."""


@dataclass(frozen=True)
class _Floats:
    ok: bool
    ratio: float
    limit: float
    shared: float
    """What noise that does not follow a row's own scale may add to each row's allowance."""
    excusable: bool
    reference_error: float | None
    """RMSE(L-R) over rms(R); None where R is all zeros."""

    def worse(self, verdict: OutputVerdict) -> bool:
        """Whether this output is nearer to its limit, or further beyond, than those before."""
        if verdict.error_ratio is None or verdict.error_ratio_limit is None:
            return True
        return self.ratio / self.limit > verdict.error_ratio / verdict.error_ratio_limit


def compare(
    actual: Sequence[Tensor],
    expected: Sequence[Tensor],
    exact: Sequence[Tensor] | None,
    inputs: Sequence[Tensor],
    precision: Precision,
    *,
    tolerance: float | None = None,
    accumulation: int | None = None,
    poison: bytes | int | None = None,
    multiple: float | None = None,
    assumed_errors: Sequence[float | None] | None = None,
    describing: bool = True,
) -> OutputVerdict:
    """Judge the outputs of one call.

    Args:
        actual: K, the candidate's outputs, flattened; Python scalars as 0-dim tensors. Without
            values (on the meta device) where any shape or dtype is wrong.
        expected: L, the reference's outputs in the task's precision, on the same device.
        exact: R, the same from an fp64 reference (floating ones in fp64, any device), or None.
        inputs: the call's flattened input tensors: for ties, and to recognise copies.
        precision: the task's precision.
        tolerance: relative and absolute, of `torch.allclose`; None: our own rule.
        accumulation: longest sum behind one output element (`Work.accumulation`); None: guessed
            from the shapes.
        poison: what the output slots were filled with before the call, as bytes that repeat.
        multiple: m, in place of the rule's.
        assumed_errors: RMSE(L-R) over rms(R) of each output, known from other calls; None counts
            as 0. Then L stands in for R, and one unit of m is taken off: what passes would pass
            beside such an R.
        describing: False where it is of no use how wrong values are wrong, which takes far longer
            to find out than that they are.
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
    verdict = OutputVerdict(True, None, None, None, reference_errors=(None,) * len(expected))
    if assumed_errors is not None:
        exact = expected
    # All forms first: where one is wrong, no values have been read (`ModuleRunner.outputs`).
    for index, (k, reference) in enumerate(zip(actual, expected, strict=True)):
        mismatch = structural(index, k, reference)
        if mismatch is not None:
            return replace(verdict, ok=False, mismatch=mismatch)
    for index, (k, reference) in enumerate(zip(actual, expected, strict=True)):
        if k.numel() == 0:
            continue
        r = None if exact is None else exact[index]
        right, wrong, allowance, excusable = reference, None, None, False
        if not (k.is_floating_point() or k.is_complex()):
            wrong = _wrong_integers(k, reference, r, inputs)
            ok = wrong is None
            excusable = not ok and tolerance is None
        elif tolerance is not None:
            wrong = _not_close(k, reference, tolerance)
            ok = wrong is None
        else:
            n = accumulation or _longest_accumulation(inputs, k)
            law = rule(precision, k.dtype, k.numel(), n, assumed=r is None)
            if multiple is not None:
                law = replace(law, multiple=multiple)
            if assumed_errors is not None:
                known = assumed_errors[index] or 0.0
                law = replace(law, multiple=law.multiple - 1, assumed_error=known)
            k, reference, right = _real(k, reference, reference if r is None else r)
            matrix = _as_rows(k, reference, right)
            one = _compare_floats(matrix, law)
            ok, excusable = one.ok, one.excusable
            errors = list(verdict.reference_errors)
            errors[index] = one.reference_error
            verdict = replace(verdict, reference_errors=tuple(errors))
            if one.worse(verdict):
                verdict = replace(verdict, error_ratio=one.ratio, error_ratio_limit=one.limit)
            if not ok and describing:
                allowance = _allowance(matrix, law, one.shared)
        if not ok and describing:
            mismatch = describe(
                index, k, right, wrong=wrong, allowance=allowance, inputs=inputs, poison=poison
            )
            return replace(verdict, ok=False, mismatch=mismatch, excusable=excusable)
        if not ok:
            return replace(verdict, ok=False, excusable=excusable)
    return verdict


def _longest_accumulation(inputs: Sequence[Tensor], output: Tensor) -> int:
    longest: int = max((max(t.shape, default=1) for t in inputs), default=1)
    total = sum(t.numel() for t in inputs)
    return int(max(1, longest, total // output.numel()))


def _wrong_integers(
    k: Tensor, reference: Tensor, r: Tensor | None, inputs: Sequence[Tensor]
) -> Tensor | None:
    """The wrong elements, bool of k's shape; None where there are none, or ties alone."""
    wrong = k != reference
    if r is not None:
        wrong &= k != r.to(k.device)
    if not bool(wrong.any()):
        return None
    if k.dtype is not torch.bool and tied(k, reference, wrong, inputs):
        return None
    return wrong


def _not_close(k: Tensor, reference: Tensor, tolerance: float) -> Tensor | None:
    """The elements that `torch.allclose` would refuse, bool of k's shape; None for none."""
    flat_k, flat_l = k.reshape(-1), reference.reshape(-1)
    wrong = torch.empty(k.numel(), dtype=torch.bool, device=k.device)
    for start in range(0, k.numel(), chunk(k)):
        stop = start + chunk(k)
        close = torch.isclose(
            flat_k[start:stop], flat_l[start:stop], rtol=tolerance, atol=tolerance
        )
        torch.logical_not(close, out=wrong[start:stop])
    return wrong.reshape(k.shape) if bool(wrong.any()) else None


def _columns(shape: Sequence[int]) -> int:
    """Length of a row: the product of as few trailing dimensions as hold `ROW` elements."""
    columns = 1
    for size in reversed(shape):
        if columns >= ROW:
            break
        columns *= size
    return columns


def _real(k: Tensor, reference: Tensor, r: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Complex numbers as pairs of real ones; raises `ValueError` for an R of another shape."""
    if k.is_complex():
        k, reference, r = (torch.view_as_real(each) for each in (k, reference, r))
    if r.shape != reference.shape:
        raise ValueError("the fp64 reference has another shape than the reference")
    return k, reference, r


def _as_rows(k: Tensor, reference: Tensor, r: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    columns = _columns(k.shape)
    shape = k.numel() // columns, columns
    return k.reshape(shape), reference.reshape(shape), r.reshape(shape)


def _compare_floats(matrix: tuple[Tensor, Tensor, Tensor], law: Rule) -> _Floats:
    """K, L and R, all of shape (rows, columns), by the rule."""
    k = matrix[0]
    rows, columns = k.shape
    zero = torch.zeros((), dtype=torch.float64, device=k.device)
    whole = ErrorSums.zeros(k.device)
    by_column = ErrorSums.zeros(k.device, columns) if rows >= ROW else None
    misplaced = torch.zeros((), dtype=torch.bool, device=k.device)
    # How much more than its own allowance some row needs, among rows with values and rows of zeros.
    needed, needed_by_zeros, reference_row_error = zero - 1, zero - 1, zero
    needed_by_element = zero - 1
    for row_sums, column_sums, block_misplaced in _summed(matrix, law, by_column is not None):
        misplaced |= block_misplaced
        whole.add(row_sums.total())
        if by_column is not None and column_sums is not None:
            by_column.add(column_sums)
        need, by_element = row_sums.need(columns, law)
        empty = row_sums.r == 0
        needed = torch.maximum(needed, need.masked_fill(empty, -1.0).amax())
        of_values = by_element.masked_fill(empty, -1.0).amax()
        needed_by_element = torch.maximum(needed_by_element, of_values)
        of_zeros = torch.maximum(need, by_element).masked_fill(~empty, -1.0).amax()
        needed_by_zeros = torch.maximum(needed_by_zeros, of_zeros)
        relative = torch.sqrt(row_sums.l / row_sums.r.masked_fill(empty, 1.0))
        reference_row_error = torch.maximum(
            reference_row_error, relative.masked_fill(empty, 0.0).amax()
        )

    count = k.numel()
    error, reference_error, rms = (math.sqrt(float(s) / count) for s in (whole.k, whole.l, whole.r))
    # Both in fp64: errors of a product of many small numbers are nil in fp32.
    double = torch.float64
    limit = float(
        law.allowed(torch.tensor(reference_error, dtype=double), torch.tensor(rms, dtype=double))
    )
    ratio_limit = law.multiple
    if reference_error > 0 and limit < law.multiple * reference_error:
        ratio_limit = limit / reference_error
    scale = limit / ratio_limit
    ratio = error / scale if scale > 0 else (0.0 if error == 0 else math.inf)

    # Noise that does not follow a row's own scale is excused as far as the reference shows it.
    follows_rows = bool(reference_row_error <= 16 * law.floor)
    shared = 0.0 if follows_rows else law.multiple * reference_error
    # In few elements it may be far larger than on average, and a row of zeros may hold just one.
    of_one = 0.0 if follows_rows else max(shared, 2 * float(whole.worst_l))
    ok = (
        not bool(misplaced)
        and error <= limit
        and float(needed) <= max(shared, of_one / math.sqrt(columns))
        and float(needed_by_element) <= of_one
        and float(needed_by_zeros) <= max(shared, 2 * law.round_off * rms)
    )
    if ok and by_column is not None:
        need, by_element = by_column.need(rows, law)
        waiting = torch.where(by_column.r == 0, 2 * law.round_off * rms, 0.0)
        in_rmse = need <= waiting.clamp(min=max(shared, of_one / math.sqrt(rows)))
        ok = bool((in_rmse & (by_element <= waiting.clamp(min=of_one))).all())
    excusable = not ok and not error > law.most * rms
    relative_error = reference_error / rms if rms > 0 else None
    return _Floats(ok, ratio, ratio_limit, shared, excusable, relative_error)


def _summed(
    matrix: tuple[Tensor, Tensor, Tensor], law: Rule, with_columns: bool
) -> Iterator[tuple[ErrorSums, ErrorSums | None, Tensor]]:
    """What `blocks` gives, in one piece where a GPU can do it in one pass."""
    if matrix[0].is_cuda and matrix[0].numel() >= _WORTH_A_KERNEL and find_spec("triton"):
        from evaluator.judge.correctness.fused_error_sums import fused_error_sums

        sums = fused_error_sums(matrix, law, with_columns)
        if sums is not None:
            yield *sums, torch.zeros((), dtype=torch.bool, device=matrix[0].device)
            return
    yield from blocks(matrix, law, with_columns)


def _allowance(matrix: tuple[Tensor, Tensor, Tensor], law: Rule, shared: float) -> Allowance:
    rows, columns = matrix[0].shape
    of_rows: list[Tensor] = []
    by_column: ErrorSums | None = None
    for row_sums, column_sums, _ in blocks(matrix, law, rows >= ROW):
        of_rows.append(row_sums.element_limit(columns, law))
        if by_column is not None and column_sums is not None:
            by_column.add(column_sums)
        else:
            by_column = column_sums
    of_row = torch.cat(of_rows)
    of_column = (
        of_row.new_full((columns,), math.inf)
        if by_column is None
        else by_column.element_limit(rows, law)
    )
    return Allowance(of_row + shared, of_column + shared, law.element)
