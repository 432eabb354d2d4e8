"""What the wrong elements of an output look like: the recognisers in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from evaluator.judge.correctness.place_patterns import places
from evaluator.judge.correctness.value_patterns import (
    constant,
    factor,
    input_copy,
    offset,
    precision,
    row_factor,
    shifted,
    transposed,
    zeros,
)
from evaluator.judge.correctness.wrong_elements import Detail, Wrong
from evaluator.mismatch_pattern import Pattern

_MOSTLY = 0.4
"""Share of the elements from which on an output is wrong as a whole."""


def recognise(
    found: Wrong, actual: Tensor, wrong: Tensor, inputs: Sequence[Tensor], poison: bytes | None
) -> tuple[tuple[Pattern, ...], Detail]:
    """Pattern codes, likeliest first, and what they rest on.

    Args:
        found: the sample of the wrong elements.
        actual: the whole output.
        wrong: bool, same shape.
        inputs: the call's inputs.
        poison: bytes that repeat through the slot before the call; None: not known.
    """
    codes: list[Pattern] = []
    details: Detail = {}

    def note(code: Pattern, detail: Detail | None) -> None:
        if detail is not None and code not in codes:
            codes.append(code)
            details.update(detail)

    if found.count == 0:
        return (), {}
    unwritten = _poisoned(found, actual, poison)
    note(Pattern.UNWRITTEN, _share("unwritten_share", unwritten, least=0.1))
    note(Pattern.NAN, _share("nan_share", torch.isnan(found.actual) & ~unwritten))
    note(Pattern.INFINITE, _share("infinite_share", torch.isinf(found.actual) & ~unwritten))
    values: tuple[tuple[Pattern, Callable[[], Detail | None]], ...] = (
        (Pattern.INPUT_COPY, lambda: input_copy(found, inputs)),
        (Pattern.ZEROS, lambda: zeros(found)),
        (Pattern.CONSTANT, lambda: constant(found)),
        (Pattern.TRANSPOSED, lambda: transposed(found, actual)),
        (Pattern.FACTOR, lambda: factor(found, actual.dtype)),
        (Pattern.OFFSET, lambda: offset(found, actual.dtype)),
        (Pattern.SHIFTED, lambda: shifted(found, actual)),
        (Pattern.ROW_FACTOR, lambda: row_factor(found, actual)),
    )
    located = [(code, where) for code, where in places(wrong, found) if where is not None]
    partly = not codes and bool(located) and found.count < _MOSTLY * wrong.numel()
    if partly:
        # Where few elements are wrong, their place says more than that they hold zeros.
        note(*located[0])
    for code, look in values:
        if not codes or (partly and len(codes) == 1 and code in (Pattern.ZEROS, Pattern.OFFSET)):
            note(code, look())
    for code, where in located:
        note(code, where)
    if not codes:
        note(Pattern.PRECISION, precision(found, actual))
    return tuple(codes or [Pattern.SCATTERED]), details


def _share(name: str, where: Tensor, least: float = 0.0) -> Detail | None:
    share = float(where.double().mean())
    return {name: share} if share > least else None


def _poisoned(found: Wrong, actual: Tensor, poison: bytes | None) -> Tensor:
    """Which wrong elements still hold the slot's first bytes; bool, shape of the sample."""
    size = actual.element_size()
    if not poison or 8 % len(poison) or size > 8:
        return torch.zeros(found.flat.shape, dtype=torch.bool)
    at = found.flat.to(actual.device)
    elements = actual.reshape(-1)[at].contiguous().view(torch.uint8).reshape(-1, size).cpu()
    tile = torch.frombuffer(bytearray(poison * (8 // len(poison))), dtype=torch.uint8)
    return (elements == tile.reshape(-1, size)[found.flat % (8 // size)]).all(1)
