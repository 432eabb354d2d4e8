"""Where wrong elements lie: boundaries, whole rows or columns, and periods."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from evaluator.judge.correctness.wrong_elements import Detail, Wrong, indices
from evaluator.mismatch_pattern import Pattern

WINDOW = 2**20
"""So many elements from the first wrong one on are searched for a period."""
_PIECE = 2**26
"""Elements that are added up together."""


def places(wrong: Tensor, found: Wrong) -> Iterator[tuple[Pattern, Detail | None]]:
    """Boundaries, whole rows or columns, and periods: what the positions alone tell."""
    shape = tuple(wrong.shape)
    if found.count == wrong.numel():
        return
    period = _every_kth(wrong)
    lines = wrong.reshape(-1, shape[-1] if len(shape) > 1 else 1)
    columns, rows = _whole(lines, 1, "column"), _whole(lines, 0, "row")
    boundary = _boundary(wrong, found)
    if period is not None and shape and int(period["period"]) % shape[-1]:
        yield Pattern.EVERY_KTH, period
    yield Pattern.BOUNDARY, boundary
    yield Pattern.COLUMNS, columns
    yield Pattern.ROWS, rows
    if boundary is None:
        yield Pattern.EVERY_KTH, period


def _marginal(wrong: Tensor, dim: int) -> Tensor:
    size, inner = wrong.shape[dim], math.prod(wrong.shape[dim + 1 :])
    cube = wrong.reshape(-1, size, inner)
    counts = torch.zeros(size, dtype=torch.int64, device=wrong.device)
    # Piece by piece: PyTorch adds up bools as eight bytes each.
    for outer in cube.split(max(1, _PIECE // (size * inner))):
        for start in range(0, size, step := max(1, _PIECE // (len(outer) * inner))):
            piece = outer[:, start : start + step]
            counts[start : start + step] += piece.sum((0, 2))
    return counts.cpu()


def _boundary(wrong: Tensor, found: Wrong) -> Detail | None:
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
    index = indices(found.flat, shape)
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


def _whole(matrix: Tensor, dim: int, name: str) -> Detail | None:
    """How many rows or columns are wrong and which first, if each is as a whole or not at all."""
    counts, full = _marginal(matrix, dim), matrix.shape[1 - dim]
    hit = counts > 0
    if full < 2 or bool(hit.all()) or not bool((counts[hit] >= 0.9 * full).all()):
        return None
    return {f"{name}s": int(hit.sum()), f"first_{name}": int(hit.nonzero()[0])}


def _every_kth(wrong: Tensor) -> Detail | None:
    window = wrong.reshape(-1)[:WINDOW].cpu()
    at = window.nonzero().reshape(-1)
    if at.numel() < 8:
        return None
    candidates = {2**power for power in range(1, 13)} | set(range(3, 65)) | {wrong.shape[-1]}
    gap = int(torch.gcd(at.diff(), at.diff().roll(1)).min()) if at.numel() > 2 else 0
    for period in sorted(candidates | ({gap} if gap > 1 else set())):
        if not 2 <= period <= window.numel() // 4:
            continue
        # For most periods the first positions alone hit too many residues.
        few = torch.bincount(at[: 8 * period] % period, minlength=period)
        if int((few > 0).sum()) > period // 2:
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
