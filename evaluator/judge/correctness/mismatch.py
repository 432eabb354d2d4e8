"""Where and how an output is wrong: the facts, gathered once a candidate has been refused.

Nothing here decides whether an output is right. Big outputs are walked in chunks; what is looked at
closely is an even sample of the wrong elements, so that the facts are the same each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from evaluator.evaluation import Mismatch, WrongElement
from evaluator.judge.correctness.patterns import recognise
from evaluator.judge.correctness.wrong_elements import Wrong, indices
from evaluator.mismatch_pattern import Pattern
from evaluator.worker.values import dtype_name

CHUNK = 2**22
SAMPLE = 2**16
EXAMPLES = 4
"""How many of the first wrong elements are shown, and how many of the worst ones."""


@dataclass(frozen=True)
class Allowance:
    """How far an element may be off: the lesser of its row's and its column's part, plus `relative`
    of its own size. The output in row-major order is cut into (rows, columns)."""

    of_row: Tensor
    """Shape (rows,)."""
    of_column: Tensor
    """Shape (columns,); infinite where columns are not judged."""
    relative: float

    def limit(self, flat: Tensor, expected: Tensor) -> Tensor:
        """Of the elements at these positions in row-major order, whose right values are these."""
        columns = self.of_column.numel()
        own = torch.minimum(self.of_row[flat // columns], self.of_column[flat % columns])
        return own + self.relative * expected.abs()


def structural(output: int, actual: Tensor, expected: Tensor) -> Mismatch | None:
    """The mismatch if shape or dtype differ (shape first), else None."""
    if actual.shape == expected.shape and actual.dtype == expected.dtype:
        return None
    return Mismatch(
        output=output,
        kind="shape" if actual.shape != expected.shape else "dtype",
        expected_shape=tuple(expected.shape),
        actual_shape=tuple(actual.shape),
        expected_dtype=dtype_name(expected.dtype),
        actual_dtype=dtype_name(actual.dtype),
        wrong=expected.numel(),
        total=expected.numel(),
    )


def describe(
    output: int,
    actual: Tensor,
    expected: Tensor,
    *,
    wrong: Tensor | None = None,
    allowance: Allowance | None = None,
    inputs: Sequence[Tensor] = (),
    poison: int | None = None,
) -> Mismatch:
    """Say what is wrong with an output that was refused.

    Args:
        expected: the same shape; fp64 for floating outputs where it exists; any device.
        wrong: bool, same shape: the wrong elements, where they are known.
        allowance: how far elements may be off otherwise. Where the refusal rests on
            an average and no element exceeds it, it is narrowed until some do.
        poison: the 32-bit word that unwritten memory held.
    """
    if wrong is None:
        wrong = _wrong(actual, expected, allowance)
    found = _sample(actual, expected, wrong, allowance)
    patterns, details = recognise(found, actual, wrong, inputs, poison)
    return Mismatch(
        output=output,
        kind="values",
        expected_shape=tuple(expected.shape),
        actual_shape=tuple(actual.shape),
        expected_dtype=dtype_name(actual.dtype),
        actual_dtype=dtype_name(actual.dtype),
        wrong=found.count,
        total=actual.numel(),
        max_abs_error=found.max_abs_error,
        max_rel_error=found.max_rel_error,
        examples=tuple(
            WrongElement(
                index=tuple(map(int, indices(torch.tensor(at), actual.shape))),
                expected=right,
                actual=got,
            )
            for at, right, got in found.shown
        ),
        patterns=patterns,
        details={"first_wrong_flat": int(found.flat[0]) if found.count else -1, **details},
    )


def add_race(mismatch: Mismatch) -> Mismatch:
    """The same, known to differ between two runs over the same bytes: `race` comes first."""
    rest = tuple(p for p in mismatch.patterns if p not in (Pattern.RACE, Pattern.SCATTERED))
    return mismatch.model_copy(update={"patterns": (Pattern.RACE, *rest)})


def add_counterfactual(mismatch: Mismatch, code: Pattern, words: str) -> Mismatch:
    """The same, with the change of the reference that explains it: it comes first."""
    # These follow from the cause, and would point elsewhere. Of rounding, all follow.
    followers = {code, Pattern.SCATTERED, Pattern.PRECISION, Pattern.SHIFTED}
    followers |= set(mismatch.patterns) if code is Pattern.PRECISION else set()
    rest = tuple(p for p in mismatch.patterns if p not in followers)
    details = {name: v for name, v in mismatch.details.items() if name != "relative_rms"}
    details["counterfactual"] = words
    return mismatch.model_copy(update={"patterns": (code, *rest), "details": details})


def _wrong(actual: Tensor, expected: Tensor, allowance: Allowance | None) -> Tensor:
    """The wrong elements, bool of the output's shape; at least one."""
    flat = torch.empty(actual.numel(), dtype=torch.bool, device=actual.device)
    k, r = actual.reshape(-1), expected.reshape(-1)
    for narrowed in (1.0, 1 / 4, 1 / 16, 1 / 64, 0.0):
        for start in range(0, k.numel(), CHUNK):
            stop = min(start + CHUNK, k.numel())
            a, low = k[start:stop].double(), r[start:stop].to(k.device)
            b = low.double()
            limit = torch.zeros_like(b)
            if allowance is not None and narrowed:
                at = torch.arange(start, stop, device=k.device)
                limit = narrowed * allowance.limit(at, b)
            # Not "off by more than": a NaN must count as wrong.
            close = (a - b).abs() <= limit
            as_returned = low.to(k.dtype).double()
            close |= (a == as_returned) | (torch.isnan(a) & torch.isnan(as_returned))
            flat[start:stop] = ~close
        if bool(flat.any()):
            break
    return flat.reshape(actual.shape)


def _sample(actual: Tensor, expected: Tensor, wrong: Tensor, allowance: Allowance | None) -> Wrong:
    k, r, mask = actual.reshape(-1), expected.reshape(-1), wrong.reshape(-1)
    # Piece by piece: PyTorch adds up bools as eight bytes each.
    count: int = sum(int(piece.sum()) for piece in mask.split(CHUNK))
    stride = max(1, count // SAMPLE)
    seen = 0
    max_abs, max_rel = 0.0, 0.0
    picked: list[Tensor] = []
    first: list[Tensor] = []
    worst: list[tuple[float, int]] = []
    for start in range(0, k.numel(), CHUNK):
        at = mask[start : start + CHUNK].nonzero().reshape(-1) + start
        if at.numel() == 0:
            continue
        if seen < EXAMPLES:
            first.append(at[: EXAMPLES - seen])
        picked.append(at[(-seen) % stride :: stride])
        seen += at.numel()
        a, b = k[at].double(), r[at.to(r.device)].to(k.device).double()
        error = (a - b).abs()
        finite = torch.isfinite(error)
        if bool(finite.any()):
            max_abs = max(max_abs, float(error[finite].max()))
            relative = (error / b.abs())[finite & (b != 0)]
            if relative.numel():
                max_rel = max(max_rel, float(relative.max()))
        ranked = torch.where(finite, error, torch.inf)
        top = ranked.topk(min(EXAMPLES, ranked.numel()))
        worst += zip(top.values.tolist(), at[top.indices].tolist(), strict=True)
    worst.sort(key=lambda pair: (-pair[0], pair[1]))
    flat = torch.cat(picked) if picked else torch.zeros(0, dtype=torch.int64, device=k.device)
    shown = torch.cat(first).tolist() if first else []
    shown += [at for _, at in worst[: 2 * EXAMPLES] if at not in shown]
    shown = shown[: 2 * EXAMPLES]
    right = r[flat.to(r.device)].to(k.device).double()
    return Wrong(
        count=count,
        flat=flat.cpu(),
        actual=k[flat].double().cpu(),
        expected=right.cpu(),
        allowed=None if allowance is None else allowance.limit(flat, right).cpu(),
        max_abs_error=max_abs,
        max_rel_error=max_rel,
        shown=tuple((at, float(r[at]), float(k[at])) for at in shown),
    )
