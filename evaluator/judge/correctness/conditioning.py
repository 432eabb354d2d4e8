"""How far off the reference is when its inputs are rounded once more: another measure of L's error.

Where a sum cancels, an honest implementation is as far off as its order of adding happens to put
it, and so is the reference: now and then it is nearly exact by luck, and its error L-R then allows
next to nothing. In a large output some element always is. So before an output is refused for its
values, it is compared with what the reference gives for inputs that are each one unit in the last
place off, at most: with the worst of several such results, element by element.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from evaluator.errors import UnusableReferenceError
from evaluator.judge.correctness.accept_rule import rule
from evaluator.judge.problem.reference import Reference
from evaluator.settings import Precision

_NUDGES = 8
_LAST_PLACE = torch.finfo(torch.float32).eps
_PIECE = 2**24
"""Elements that are looked at together: copies of a whole output might not fit."""
MULTIPLE = {Precision.FP32: 10.0, Precision.TF32: 2.0}
"""m against these: luck plays no part in them, and honest kernels come to 10 times L's error at
most (`docs/correctness.md`)."""


def nudged_outputs(
    reference: Reference,
    values: list[Any],
    exact: Sequence[Tensor],
    precision: Precision,
    seed: int,
) -> Iterator[list[Tensor]]:
    """Outputs of the reference for `values`, nudged; at most eight, in the task's precision. Each
    element of a later one is the one that is furthest off so far: what all of them allow together.

    Left out are those in which any element is off by more than the reference's error may ever buy
    (`Rule.ceiling`, relative to the whole output's rms): a threshold was crossed, and that says
    nothing of rounding. In 16 bits there is no such ceiling, and nothing is given: one rounding
    there is as much as a nudge. Nor for a reference that changes its inputs.
    """
    if reference.changes_inputs or precision not in MULTIPLE:
        return
    generator = torch.Generator(device=reference.device).manual_seed(seed)
    worst: list[Tensor] = []
    for _ in range(_NUDGES):
        try:
            outputs = reference.run([nudged(value, generator) for value in values])
        except UnusableReferenceError:  # a probability may be just over 1 now
            continue
        pairs = zip(outputs, exact, strict=True)
        if all(_is_near(output, right, precision) for output, right in pairs):
            worst = list(map(_further_off, outputs, worst, exact)) if worst else outputs
            yield worst


def _further_off(one: Tensor, other: Tensor, exact: Tensor) -> Tensor:
    """Of each element the one that is further off."""
    if not one.is_floating_point():
        return one
    further = torch.empty_like(one, memory_format=torch.contiguous_format)
    flat = (t.reshape(-1).split(_PIECE) for t in (further, one, other, exact))
    for target, first, second, right in zip(*flat, strict=True):
        is_further = (second - right).abs_() > (first - right).abs_()
        torch.where(is_further, second, first, out=target)
    return further


def nudged(value: Any, generator: torch.Generator, most: float = _LAST_PLACE) -> Any:
    """Its fp32 numbers are off by this part of themselves, up or down, or as they are."""
    if isinstance(value, dict):
        return {key: nudged(each, generator, most) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(nudged(each, generator, most) for each in value)
    if not isinstance(value, Tensor) or value.dtype is not torch.float32:
        return value
    made = torch.empty_like(value, memory_format=torch.contiguous_format)
    pieces = zip(made.view(-1).split(_PIECE), value.reshape(-1).split(_PIECE), strict=True)
    for target, piece in pieces:
        steps = torch.randint(-1, 2, piece.shape, generator=generator, device=value.device)
        torch.mul(piece, 1.0 + steps * most, out=target)
    return made


def _is_near(output: Tensor, exact: Tensor, precision: Precision) -> bool:
    if not output.is_floating_point():
        return torch.equal(output, exact.to(output))
    law = rule(precision, output.dtype, output.numel(), 1)
    most, squares, count = 0.0, 0.0, 0
    pieces = zip(output.reshape(-1).split(_PIECE), exact.reshape(-1).split(_PIECE), strict=True)
    for one, other in pieces:
        right, finite = other.double(), torch.isfinite(other)
        if not torch.equal(finite, torch.isfinite(one)):
            return False
        off = torch.where(finite, (one.double() - right).abs_(), 0.0)
        most = max(most, float(off.max()))
        squares += float(torch.where(finite, right, 0.0).square_().sum())
        count += int(finite.sum())
    return count == 0 or most <= law.ceiling * math.sqrt(squares / count)
