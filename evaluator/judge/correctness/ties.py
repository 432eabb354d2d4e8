"""Index outputs that may differ from the reference because two values are exactly equal."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor


def tied(actual: Tensor, expected: Tensor, wrong: Tensor, inputs: Sequence[Tensor]) -> bool:
    """Whether every index where `wrong` is set points at a value equal to the expected one.

    Integer tensors of one shape. They count as indices into a floating input along one dimension
    when their shape is that input's with the dimension removed or shortened (arg-max, top-k, sort),
    and the expected indices lie within it. Without the dimension, the expected values must also be
    extremes along it, and with it no index may occur twice.
    """
    return any(
        _tied_along(actual, expected, wrong, values, dim)
        for values in inputs
        if values.is_floating_point() and values.device == actual.device
        for dim in range(values.dim())
    )


def _tied_along(actual: Tensor, expected: Tensor, wrong: Tensor, values: Tensor, dim: int) -> bool:
    shape = list(values.shape)
    size = shape.pop(dim)
    if list(actual.shape) == shape:
        actual, expected, wrong = (t.unsqueeze(dim) for t in (actual, expected, wrong))
    kept = list(actual.shape)
    if len(kept) != values.dim() or kept.pop(dim) > size or kept != shape:
        return False
    for index in (actual, expected):
        if int(index.min()) < 0 or int(index.max()) >= size:
            return False
    there = values.gather(dim, expected.long())
    if bool((wrong & (values.gather(dim, actual.long()) != there)).any()):
        return False
    if actual.shape[dim] == 1:
        return bool((there == values.amax(dim, keepdim=True)).all()) or bool(
            (there == values.amin(dim, keepdim=True)).all()
        )
    ordered = actual.sort(dim).values
    return not bool((ordered.diff(dim=dim) == 0).any())
