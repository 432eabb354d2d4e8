"""Is what the candidate returned what an honest implementation would return?

The rule, in K (candidate), L (reference) and R (fp64 reference), is stated in `accept_rule`.
Outputs are walked in chunks; no fp64 copy of a whole output is ever made.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from operator import itemgetter

import torch
from torch import Tensor

from evaluator.evaluation import ErrorPart, Mismatch
from evaluator.judge.correctness.accept_rule import Rule, rule
from evaluator.judge.correctness.error_sums import ErrorSums, blocks, chunk
from evaluator.judge.correctness.mismatch import Allowance, describe, structural
from evaluator.judge.correctness.ties import tied
from evaluator.judge.correctness.wrong_elements import indices
from evaluator.settings import Precision

ROW = 64
"""Fewest elements in a row: with fewer, L's error could be nil by luck."""
_OF_ROWS: tuple[ErrorPart, ...] = ("row", "element of a row")
_OF_COLUMNS: tuple[ErrorPart, ...] = ("column", "element of a column")
_WORTH_A_KERNEL = 2**20
"""Elements from which a kernel of our own is compiled, which takes a second, once."""


@dataclass(frozen=True)
class OutputVerdict:
    """Whether all outputs of one call are right, and how far off they were."""

    ok: bool
    error_ratio: float | None
    """Of what is nearest to its limit, or furthest beyond: the error of K over that of L, or over
    the part of the floor that counts as much; None without floating outputs."""
    error_ratio_limit: float | None
    mismatch: Mismatch | None
    """Of the first output that is wrong; None for wrong values that are not to be described."""
    error_part: ErrorPart = "whole"
    excusable: bool = False
    """It is wrong, but another reference, no worse than it may be, could allow it."""
    reference_errors: tuple[float | None, ...] = ()
    """RMSE(L-R) over rms(R) of each output; None where R says nothing of it: for zeros, integers,
    booleans and empty outputs."""

    @property
    def error_share(self) -> float:
        """How much of what is allowed the error uses; 0 without floating outputs."""
        return (self.error_ratio or 0.0) / (self.error_ratio_limit or 1.0)


@dataclass(frozen=True)
class _Floats:
    ok: bool
    ratio: float
    limit: float
    part: ErrorPart
    place: int
    """The number of the row or column that `part` is of."""
    allowance: Allowance
    excusable: bool
    reference_error: float | None


def compare(
    actual: Sequence[Tensor],
    expected: Sequence[Tensor],
    exact: Sequence[Tensor] | None,
    inputs: Sequence[Tensor],
    precision: Precision,
    *,
    tolerance: tuple[float, float] | None = None,
    thresholds: Mapping[str, float] | None = None,
    accumulation: int = 1,
    poison: int | None = None,
    multiple: float | None = None,
    assumed_errors: Sequence[float | None] | None = None,
    most_share: float = 1.0,
    describing: bool = True,
    orders_ties: bool = False,
) -> OutputVerdict:
    """Judge the outputs of one call.

    Args:
        actual: K, the candidate's outputs, flattened; Python scalars as 0-dim tensors. Without
            values (on the meta device) where any shape or dtype is wrong.
        expected: L, the reference's outputs in the task's precision, on the same device.
        exact: R, the same from an fp64 reference (floating ones in fp64, any device), or None.
        inputs: the call's flattened input tensors: for ties, and to recognise copies.
        precision: the task's precision.
        tolerance: relative and absolute, of `torch.allclose`, for outputs of 32 bits and more and
            for others; None: our own rule.
        thresholds: the task's own, of the whole of an output: `cosine_sim`, `l1_relative`, `rmse`.
        accumulation: longest sum behind one output element (`Work.accumulation`).
        poison: the 32-bit word that unwritten memory held; None: not known.
        multiple: m, in place of the rule's.
        assumed_errors: RMSE(L-R) over rms(R) of each output, known from other calls; None counts
            as 0. Then L stands in for R, and one unit of m is taken off: what passes would pass
            beside such an R.
        most_share: how much of what is allowed may be used.
        describing: False where it is of no use how wrong values are wrong, which takes far longer
            to find out than that they are.
        orders_ties: whether an index must also be the expected one among equal values.
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
        wrong, allowance, excusable = None, None, False
        k, reference, right = _real(k, reference, reference if r is None else r)
        furthest: tuple[int, ...] = ()
        if not k.is_floating_point():
            wrong = _wrong_integers(k, reference, r, None if orders_ties else inputs)
            ok = wrong is None
            excusable = not ok and tolerance is None
        elif thresholds:
            share, off = _share_of(thresholds, k, reference)
            wrong = off if (beyond := share > most_share) else None
            ok = not beyond
            if share >= verdict.error_share:
                verdict = replace(verdict, error_ratio=share, error_ratio_limit=1.0)
        elif tolerance is not None:
            wrong = _not_close(k, reference, tolerance[k.dtype.itemsize < 4])
            ok = wrong is None
        else:
            law = rule(precision, k.dtype, k.numel(), accumulation, assumed=r is None)
            if multiple is not None:
                law = replace(law, multiple=multiple)
            if assumed_errors is not None:
                known = assumed_errors[index] or 0.0
                law = replace(law, multiple=law.multiple - 1, assumed_error=known)
            matrix = _as_rows(k, reference, right)
            one = _compare_floats(matrix, law, most_share)
            ok, excusable = one.ok, one.excusable
            errors = list(verdict.reference_errors)
            errors[index] = one.reference_error
            verdict = replace(verdict, reference_errors=tuple(errors))
            if verdict.error_ratio is None or one.ratio / one.limit > verdict.error_share:
                verdict = replace(
                    verdict,
                    error_ratio=one.ratio,
                    error_ratio_limit=one.limit,
                    error_part=one.part,
                )
            allowance = one.allowance
            if not ok and describing and one.part != "whole":
                furthest = _furthest(matrix, k.shape, one)
        if not ok and describing:
            mismatch = describe(
                index, k, right, wrong=wrong, allowance=allowance, inputs=inputs, poison=poison
            )
            mismatch = mismatch.model_copy(update={"furthest": furthest})
            return replace(verdict, ok=False, mismatch=mismatch, excusable=excusable)
        if not ok:
            return replace(verdict, ok=False, excusable=excusable)
    return verdict


def _wrong_integers(
    k: Tensor, reference: Tensor, r: Tensor | None, inputs: Sequence[Tensor] | None
) -> Tensor | None:
    """The wrong elements, bool of k's shape; None where there are none, or ties in `inputs`."""
    wrong = k != reference
    if r is not None:
        wrong &= k != r.to(k.device)
    if not bool(wrong.any()):
        return None
    if inputs is not None and k.dtype is not torch.bool and tied(k, reference, wrong, inputs):
        return None
    return wrong


def _share_of(
    thresholds: Mapping[str, float], k: Tensor, reference: Tensor
) -> tuple[float, Tensor]:
    """How much of what the thresholds allow is used, and the elements that are off."""
    off = k != reference
    x, y = k.double().flatten(), reference.double().flatten()
    if not bool(off.any()):
        return 0.0, off
    error = x - y
    cosine = float(torch.cosine_similarity(x, y, 0))
    shares = (
        (1 - cosine) / (1 - thresholds["cosine_sim"]),
        float(error.abs().sum() / y.abs().sum().clamp(min=1e-12)) / thresholds["l1_relative"],
        float(error.square().mean().sqrt()) / thresholds["rmse"],
    )
    return max(share if share == share else math.inf for share in shares), off


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


def _compare_floats(matrix: tuple[Tensor, Tensor, Tensor], law: Rule, most_share: float) -> _Floats:
    """K, L and R, all of shape (rows, columns), by the rule."""
    k = matrix[0]
    rows, columns = k.shape
    by_column = ErrorSums.zeros(k.device, columns) if rows >= ROW else None
    misplaced = torch.zeros((), dtype=torch.bool, device=k.device)
    parts: list[ErrorSums] = []
    for row_sums, column_sums, block_misplaced in _summed(matrix, law, by_column is not None):
        misplaced |= block_misplaced
        parts.append(row_sums)
        if by_column is not None and column_sums is not None:
            by_column.add(column_sums)
        else:
            by_column = None
    by_row = ErrorSums.joined(parts)
    whole = by_row.total()
    count = k.numel()
    error, reference_error, rms = (math.sqrt(float(s) / count) for s in (whole.k, whole.l, whole.r))
    limit = float(law.allowed(torch.sqrt(whole.l / count), torch.sqrt(whole.r / count)))
    ratio_limit = law.multiple
    if reference_error > 0 and limit < law.multiple * reference_error:
        ratio_limit = limit / reference_error
    share = error / limit if limit > 0 else (0.0 if error == 0 else math.inf)

    # Noise that does not follow a row's own scale is excused as far as the reference shows it.
    has_values = by_row.r > 0
    relative = torch.sqrt(by_row.l[has_values] / by_row.r[has_values])
    follows_rows = not bool((relative > 16 * law.floor).any())
    shared = 0.0 if follows_rows else law.multiple * reference_error
    # In few elements it may be far larger than on average, and a row of zeros may hold just one.
    of_one = 0.0 if follows_rows else max(shared, 2 * float(whole.worst_l))
    found: list[tuple[float, float, ErrorPart, int]] = [(share, ratio_limit, "whole", 0)]
    for sums, length, names in ((by_row, columns, _OF_ROWS), (by_column, rows, _OF_COLUMNS)):
        if sums is not None:
            room = max(shared, of_one / math.sqrt(length)), of_one, 2 * law.round_off * rms
            shares = sums.shares(length, law, *room)
            for each, multiple, part in zip(shares, (4, 2), names, strict=True):
                most, place = each.max(0)
                found.append((float(most), multiple * law.multiple, part, int(place)))
    share, ratio_limit, part, at = max(found, key=itemgetter(0))
    ok = not bool(misplaced) and share <= most_share
    of_row = by_row.element_limit(columns, law)
    of_column = of_row.new_full((columns,), math.inf)
    if by_column is not None:
        of_column = by_column.element_limit(rows, law)
    return _Floats(
        ok=ok,
        ratio=share * ratio_limit,
        limit=ratio_limit,
        part=part,
        place=at,
        allowance=Allowance(of_row + shared, of_column + shared, law.element),
        excusable=not ok and not error > law.most * rms,
        reference_error=reference_error / rms if rms > 0 else None,
    )


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


def _furthest(
    matrix: tuple[Tensor, Tensor, Tensor], shape: Sequence[int], one: _Floats
) -> tuple[int, ...]:
    """Index of the element that is furthest off in the row or column that `one.part` names."""
    in_row, columns = one.part.endswith("row"), matrix[0].shape[1]
    k, _, r = (t[one.place] if in_row else t[:, one.place] for t in matrix)
    right = r.to(k.device).double()
    off = (k.double() - right).abs_() - one.allowance.relative * right.abs()
    place = int(off.nan_to_num(0.0).argmax())
    flat = one.place * columns + place if in_row else place * columns + one.place
    return tuple(map(int, indices(torch.tensor(flat), shape)))
