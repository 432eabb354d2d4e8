"""What the wrong elements of an output look like: copies, constants, factors, other places, fewer
bits. The recognisers are tried in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from evaluator.judge.correctness.place_patterns import places
from evaluator.judge.correctness.wrong_elements import Detail, Wrong, indices
from evaluator.mismatch_pattern import Pattern

_MOSTLY = 0.4
"""Share of the elements from which on an output is wrong as a whole."""
_LARGEST_ROUNDING = 0.02
"""RMSE relative to the outputs' rms: bf16 leaves less, also after long sums."""
_NEARLY = 1000.0
"""How many times what is allowed an element may be off that is nearly right."""


def recognise(
    found: Wrong, actual: Tensor, wrong: Tensor, inputs: Sequence[Tensor], poison: int | None
) -> tuple[tuple[Pattern, ...], Detail]:
    """Pattern codes, likeliest first, and what they rest on. `poison`: as in `describe`."""
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
        (Pattern.INPUT_COPY, lambda: _input_copy(found, inputs)),
        (Pattern.ZEROS, lambda: _zeros(found)),
        (Pattern.CONSTANT, lambda: _constant(found)),
        (Pattern.TRANSPOSED, lambda: _transposed(found, actual)),
        (Pattern.FACTOR, lambda: _factor(found, actual.dtype)),
        (Pattern.OFFSET, lambda: _offset(found, actual.dtype)),
        (Pattern.SHIFTED, lambda: _shifted(found, actual)),
        (Pattern.ROW_FACTOR, lambda: _row_factor(found, actual)),
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
    error = (found.actual - found.expected).abs()
    is_near = found.allowed is not None and bool((error <= _NEARLY * found.allowed).all())
    if is_near or not codes:
        note(Pattern.PRECISION, _precision(found, actual, is_near))
    return tuple(codes or [Pattern.SCATTERED]), details


def _share(name: str, where: Tensor, least: float = 0.0) -> Detail | None:
    share = float(where.double().mean())
    return {name: share} if share > least else None


def _poisoned(found: Wrong, actual: Tensor, poison: int | None) -> Tensor:
    size = actual.element_size()
    if poison is None or size > 8:
        return torch.zeros(found.flat.shape, dtype=torch.bool)
    at = found.flat.to(actual.device)
    elements = actual.reshape(-1)[at].contiguous().view(torch.uint8).reshape(-1, size).cpu()
    tile = torch.frombuffer(bytearray(2 * poison.to_bytes(4, "little")), dtype=torch.uint8)
    return (elements == tile.reshape(-1, size)[found.flat % (8 // size)]).all(1)


def _input_copy(found: Wrong, inputs: Sequence[Tensor]) -> Detail | None:
    if found.flat.numel() < 4 or bool((found.actual == found.actual[0]).all()):
        return None
    for number, values in enumerate(inputs):
        if values.is_complex() or values.numel() <= int(found.flat[-1]):
            continue
        same = values.reshape(-1)[found.flat.to(values.device)].double().cpu() == found.actual
        if float(same.double().mean()) > 0.99:
            return {"input": number}
    return None


def _zeros(found: Wrong) -> Detail | None:
    return {} if float((found.actual == 0).double().mean()) > 0.99 else None


def _constant(found: Wrong) -> Detail | None:
    value = found.actual.median()
    if found.actual.numel() < 4 or float(value) == 0:
        return None
    same = (found.actual - value).abs() <= 1e-6 * value.abs()
    return {"constant": float(value)} if float(same.double().mean()) > 0.99 else None


def _transposed(found: Wrong, actual: Tensor) -> Detail | None:
    shape = tuple(actual.shape)
    dims = len(shape)
    if dims < 2 or found.flat.numel() < 4:
        return None
    orders = {
        "last_two": (*range(dims - 2), dims - 1, dims - 2),
        "first_two": (1, 0, *range(2, dims)),
        "channels_last": (0, *range(2, dims), 1),
        "channels_first": (0, dims - 1, *range(1, dims - 1)),
    }
    index = indices(found.flat, shape)
    values = actual.reshape(-1)
    scale = float(found.expected.square().mean().sqrt())
    for name, order in orders.items():
        source = torch.zeros_like(found.flat)
        for dim in order:
            source = source * shape[dim] + index[dim]
        moved = source != found.flat
        if float(moved.double().mean()) < 0.5:
            continue
        there = values[source.to(values.device)].double().cpu()
        close = (there - found.expected).abs() <= 1e-2 * found.expected.abs() + 1e-3 * scale
        if float(close.double().mean()) > 0.98:
            return {"transposed": name}
    return None


def _shifted(found: Wrong, actual: Tensor) -> Detail | None:
    if found.flat.numel() < 8:
        return None
    values = actual.reshape(-1)
    scale = float(found.expected.square().mean().sqrt())
    steps = {1}
    for size in reversed(actual.shape[1:]):
        steps.add(max(steps) * size)
    for step in sorted(steps):
        for moved in (step, -step):
            source = found.flat + moved
            inside = (source >= 0) & (source < values.numel())
            if float(inside.double().mean()) < 0.5:
                continue
            there = values[source[inside].to(values.device)].double().cpu()
            right = found.expected[inside]
            close = (there - right).abs() <= 1e-3 * right.abs() + 1e-4 * scale
            if float(close.double().mean()) > 0.95 and float(right.std()) > 0:
                return {"shifted_by": moved}
    return None


def _factor(found: Wrong, dtype: torch.dtype) -> Detail | None:
    size = found.expected.abs()
    large = size > 0.1 * size.median()
    if int(large.sum()) < 4:
        return None
    ratio = found.actual[large] / found.expected[large]
    factor = ratio.median()
    spread = (ratio - factor).abs()
    if float(spread.median()) > _tolerated(dtype) * abs(float(factor)):
        return None
    if float(spread.quantile(0.9)) > 10 * _tolerated(dtype) * abs(float(factor)):
        return None
    if abs(float(factor) - 1) < 10 * float(spread.median()):
        return None
    return {"factor": float(factor)}


def _offset(found: Wrong, dtype: torch.dtype) -> Detail | None:
    if found.flat.numel() < 4 or bool((found.expected == found.expected[0]).all()):
        return None
    difference = found.actual - found.expected
    offset = difference.median()
    spread = (difference - offset).abs()
    rounding = _tolerated(dtype) * abs(float(offset))
    if dtype.is_floating_point:
        rounding += 2 * torch.finfo(dtype).eps * float(found.expected.abs().median())
    if float(spread.median()) > rounding or float(spread.quantile(0.9)) > 10 * rounding:
        return None
    if abs(float(offset)) < 10 * float(spread.median()):
        return None
    return {"offset": float(offset)}


def _row_factor(found: Wrong, actual: Tensor) -> Detail | None:
    if actual.dim() < 2 or found.count != actual.numel() or found.flat.numel() < 64:
        return None
    row = found.flat // actual.shape[-1]
    ratios = found.actual / found.expected
    usable = torch.isfinite(ratios) & (found.expected.abs() > 0.05 * found.expected.abs().median())
    factors = []
    for each in row.unique()[:32].tolist():
        mine = ratios[(row == each) & usable]
        if mine.numel() < 4:
            continue
        middle = mine.median()
        if float((mine - middle).abs().quantile(0.9)) > 1e-2 * abs(float(middle)):
            return None
        factors.append(float(middle))
    if len(factors) < 4 or max(abs(factor - 1) for factor in factors) < 0.05:
        return None
    return {"least_row_factor": min(factors), "greatest_row_factor": max(factors)}


def _precision(found: Wrong, actual: Tensor, is_near: bool) -> Detail | None:
    many = found.count >= max(4, 0.2 * actual.numel())
    if not actual.is_floating_point() or not (is_near or many):
        return None
    scale = float(found.expected.square().mean().sqrt())
    error = (found.actual - found.expected).abs()
    worst = float((error / found.expected.abs().clamp(min=0.25 * scale)).max()) if scale else 1.0
    relative = float(error.square().mean().sqrt()) / (scale or 1.0)
    if not worst <= 0.5 or (relative > _LARGEST_ROUNDING and not is_near):
        return None
    return {"relative_rms": relative}


def _tolerated(dtype: torch.dtype) -> float:
    return max(1e-3, 2 * torch.finfo(dtype).eps) if dtype.is_floating_point else 1e-3
