"""What the wrong elements of an output look like: one small recogniser for each kind of mistake."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Detail = dict[str, float | int | str]
_MOSTLY = 0.4
WINDOW = 2**20
"""So many elements from the first wrong one on are searched for a period."""


@dataclass(frozen=True)
class Wrong:
    """The wrong elements: how many, and an even sample of them in fp64 on the CPU."""

    count: int
    flat: Tensor
    """int64, positions in row-major order, ascending."""
    actual: Tensor
    expected: Tensor
    max_abs_error: float
    """Over the elements where both are finite, like `max_rel_error`."""
    max_rel_error: float
    shown: tuple[tuple[int, float, float], ...]
    """Position, expected and actual value of the first ones, then of the worst ones."""


def recognise(
    found: Wrong, actual: Tensor, wrong: Tensor, inputs: Sequence[Tensor], poison: bytes | None
) -> tuple[tuple[str, ...], Detail]:
    """Pattern codes, likeliest first, and what they rest on.

    Args:
        found: the sample of the wrong elements.
        actual: the whole output.
        wrong: bool, same shape.
        inputs: the call's inputs.
        poison: bytes that repeat through the slot before the call; None: not known.
    """
    codes: list[str] = []
    details: Detail = {}

    def note(code: str, detail: Detail | None) -> None:
        if detail is not None and code not in codes:
            codes.append(code)
            details.update(detail)

    if found.count == 0:
        return (), {}
    unwritten = _poisoned(found, actual, poison)
    note("unwritten", _share("unwritten_share", unwritten, least=0.1))
    note("nan", _share("nan_share", torch.isnan(found.actual) & ~unwritten))
    note("infinite", _share("infinite_share", torch.isinf(found.actual) & ~unwritten))
    values: tuple[tuple[str, Callable[[], Detail | None]], ...] = (
        ("input_copy", lambda: _input_copy(found, inputs)),
        ("zeros", lambda: _zeros(found)),
        ("constant", lambda: _constant(found)),
        ("transposed", lambda: _transposed(found, actual)),
        ("factor", lambda: _factor(found, actual.dtype)),
        ("offset", lambda: _offset(found, actual.dtype)),
        ("shifted", lambda: _shifted(found, actual)),
        ("row_factor", lambda: _row_factor(found, actual)),
    )
    places = [(code, where) for code, where in _places(wrong, found) if where is not None]
    partly = not codes and bool(places) and found.count < _MOSTLY * wrong.numel()
    if partly:
        # Where few elements are wrong, their place says more than that they hold zeros.
        note(*places[0])
    for code, look in values:
        if not codes or (partly and len(codes) == 1 and code in ("zeros", "offset")):
            note(code, look())
    for code, where in places:
        note(code, where)
    if not codes:
        note("precision", _precision(found, actual))
    return tuple(codes or ["scattered"]), details


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
    """Whether the right values stand where another order of the dimensions would put them."""
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
    index = _unravel(found.flat, shape)
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
    """Whether the right values stand one element, row or plane further on or back."""
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


def _row_factor(found: Wrong, actual: Tensor) -> Detail | None:
    """Every row is the right one times a number of its own."""
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


def _unravel(flat: Tensor, shape: tuple[int, ...]) -> list[Tensor]:
    index: list[Tensor] = []
    for size in reversed(shape):
        index.append(flat % size)
        flat = flat // size
    return index[::-1]


def _tolerated(dtype: torch.dtype) -> float:
    return max(1e-3, 2 * torch.finfo(dtype).eps) if dtype.is_floating_point else 1e-3


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


def _places(wrong: Tensor, found: Wrong) -> Iterator[tuple[str, Detail | None]]:
    """Boundaries, whole rows or columns, and periods: what the positions alone tell."""
    shape = tuple(wrong.shape)
    if found.count == wrong.numel():
        return
    period = _every_kth(wrong, found)
    columns = _columns(wrong) if len(shape) > 1 else None
    rows = _rows(wrong) if len(shape) > 1 else None
    boundary = _boundary(wrong, found)
    if period is not None and shape and int(period["period"]) % shape[-1]:
        yield "every_kth", period
    yield "boundary", boundary
    yield "columns", columns
    yield "rows", rows
    if boundary is None:
        yield "every_kth", period


def _marginal(wrong: Tensor, dim: int) -> Tensor:
    others = [d for d in range(wrong.dim()) if d != dim]
    counts = wrong.sum(others) if others else wrong.long()
    return counts.cpu()


def _boundary(wrong: Tensor, found: Wrong) -> Detail | None:
    """Wrong only beyond some index of a dimension, in the last part of the array, or on its rim."""
    shape, total = tuple(wrong.shape), wrong.numel()
    first = int(found.flat[0])
    for dim in reversed(range(len(shape))):
        hit = _marginal(wrong, dim).nonzero().reshape(-1)
        low, high, size = int(hit[0]), int(hit[-1]), shape[dim]
        if size < 4:
            continue
        if high == size - 1 and hit.numel() == size - low <= size // 2:
            return {"dim": dim, "from_index": low, "first_wrong_flat": first}
        if low == 0 and hit.numel() == high + 1 <= size // 4:
            return {"dim": dim, "to_index": high, "first_wrong_flat": first}
    if first >= max(1, total // 16) and found.count >= 0.99 * (total - first):
        return {"from_flat": first, "first_wrong_flat": first}
    index = _unravel(found.flat, shape)
    for width in (1, 2, 3):
        rim = torch.zeros(found.flat.shape, dtype=torch.bool)
        inner = 1.0
        for dim, size in enumerate(shape):
            if size >= 8 * width and dim >= len(shape) - 3:
                rim |= (index[dim] < width) | (index[dim] >= size - width)
                inner *= 1 - 2 * width / size
        if inner > 0.5 and found.flat.numel() >= 4 and bool(rim.all()):
            return {"rim": width, "first_wrong_flat": first}
    return None


def _columns(wrong: Tensor) -> Detail | None:
    detail = _subset(_marginal(wrong, wrong.dim() - 1), wrong.numel() // wrong.shape[-1])
    return None if detail is None else {"columns": detail[0], "first_column": detail[1]}


def _rows(wrong: Tensor) -> Detail | None:
    detail = _subset(wrong.reshape(-1, wrong.shape[-1]).sum(1).cpu(), wrong.shape[-1])
    return None if detail is None else {"rows": detail[0], "first_row": detail[1]}


def _subset(counts: Tensor, full: int) -> tuple[int, int] | None:
    """How many lines are wrong and which first, if a line is wrong as a whole or not at all."""
    hit = counts > 0
    if full < 2 or bool(hit.all()) or not bool((counts[hit] >= 0.9 * full).all()):
        return None
    return int(hit.sum()), int(hit.nonzero()[0])


def _every_kth(wrong: Tensor, found: Wrong) -> Detail | None:
    """The period of the wrong positions: some residues of the position are wrong, others right."""
    window = wrong.reshape(-1)[:WINDOW].cpu()
    at = window.nonzero().reshape(-1)
    if at.numel() < 8:
        return None
    candidates = {2**power for power in range(1, 13)} | set(range(3, 65)) | {wrong.shape[-1]}
    gap = int(torch.gcd(at.diff(), at.diff().roll(1)).min()) if at.numel() > 2 else 0
    for period in sorted(candidates | ({gap} if gap > 1 else set())):
        if not 2 <= period <= window.numel() // 4:
            continue
        residues = torch.bincount(at % period, minlength=period)
        expected = window.numel() / period
        hit = residues > 0
        # With many wrong ones, some of each residue may be right by luck: zeros after a ReLU.
        share = 0.3 if at.numel() >= 16 * period else 0.9
        if int(hit.sum()) <= period // 2 and bool((residues[hit] >= share * expected).all()):
            first = int(hit.nonzero()[0])
            return {"period": period, "residue": first, "residues": int(hit.sum())}
    return None


def _precision(found: Wrong, actual: Tensor) -> Detail | None:
    """Small errors everywhere, of the size that rounding to fewer bits leaves."""
    if not actual.is_floating_point() or found.count < max(4, 0.2 * actual.numel()):
        return None
    scale = float(found.expected.square().mean().sqrt())
    error = (found.actual - found.expected).abs()
    worst = float((error / found.expected.abs().clamp(min=0.25 * scale)).max()) if scale else 1.0
    if not worst <= 0.5:
        return None
    detail: Detail = {"relative_rms": float(error.square().mean().sqrt()) / scale}
    if actual.dtype is torch.float32:
        bits = found.actual.float().view(torch.int32)
        if bool((bits & 0xFFFF == 0).all()):
            detail["looks_like"] = "bf16"
        elif bool((bits & 0x1FFF == 0).all()):
            detail["looks_like"] = "fp16 or tf32"
        elif detail["relative_rms"] > 8e-4:  # type: ignore[operator]
            detail["looks_like"] = "bf16"
        elif detail["relative_rms"] > 8e-5:  # type: ignore[operator]
            detail["looks_like"] = "fp16 or tf32"
    return detail
