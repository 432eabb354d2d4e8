"""The mistakes that one operation of a reference invites, as changes that can be tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import torch
from torch import Tensor

from evaluator.judge.operator_mode import OperatorCall
from evaluator.mismatch_pattern import Pattern

Apply = Callable[[OperatorCall], Any]

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "gelu": torch.nn.functional.gelu,
    "gelu (tanh)": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    "silu": torch.nn.functional.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "softplus": torch.nn.functional.softplus,
    "leaky_relu": torch.nn.functional.leaky_relu,
    "elu": torch.nn.functional.elu,
    "hardswish": torch.nn.functional.hardswish,
    "mish": torch.nn.functional.mish,
    "exp": torch.exp,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "abs": torch.abs,
    "square": torch.square,
}
_SWAPPED = ("sub", "div", "pow", "mm", "bmm", "matmul", "atan2", "floor_divide", "remainder")
_PRODUCTS = ("mm", "bmm", "addmm", "baddbmm")
_SUMS = ("sum", "mean", "linalg_vector_norm", "cumsum")
_ALONG_AN_AXIS = ("softmax", "log_softmax", "cumsum", "cumprod")
_FIGURES = (0.0, 1.0, 1e-3, 1e-5, 1e-6, 1e-8, 1e-12)
"""What a forgotten or mistaken constant often is."""


class Turn(IntEnum):
    """When a change is tried."""

    EARLY = 1
    LATE = 2
    """After the parameters."""
    LAST = 3
    """Some operators do not check sizes and flags: one that does not fit ends the process, and no
    further change is tried."""


@dataclass(frozen=True)
class Change:
    """One change of one operation."""

    code: Pattern
    words: str
    apply: Apply
    turn: Turn = Turn.EARLY


def changes(call: OperatorCall, result: Any) -> Iterator[Change]:
    """What could be mistaken about this call, likeliest first."""
    name, args = call.plain_name, call.args
    if isinstance(result, Tensor) and not call.func._schema.is_mutable:
        yield from _left_out(args, result)
    yield from _in_parts(name, args)
    yield from _over_other_axes(call)
    if name in _SWAPPED and len(args) > 1 and all(isinstance(a, Tensor) for a in args[:2]):
        yield Change(Pattern.SWAPPED_OPERANDS, "has its operands swapped", _swapped(0, 1))
    if name == "addmm":
        yield Change(Pattern.SWAPPED_OPERANDS, "has its factors swapped", _swapped(1, 2))
    yield from _short_reductions(call)
    if name in _ACTIVATIONS and isinstance(args[0], Tensor):
        for other, function in _ACTIVATIONS.items():
            if other != name:
                words = f"is {other} instead"
                yield Change(Pattern.OTHER_FUNCTION, words, _function(function), Turn.LATE)
    yield from _other_constants(call)


def _left_out(args: tuple[Any, ...], result: Tensor) -> Iterator[Change]:
    tensors = [a for a in args if isinstance(a, Tensor)]
    for number, operand in enumerate(tensors):
        if operand.shape == result.shape and result.is_floating_point():
            beside = "" if len(tensors) == 1 else f"; its operand {number + 1} is passed on"
            yield Change(Pattern.MISSING_OPERATION, f"is left out{beside}", _operand(number))


def _short_reductions(call: OperatorCall) -> Iterator[Change]:
    """Sums that end too early or begin too late, and factors that are transposed."""
    name, args = call.plain_name, call.args
    tensors = [place for place, a in enumerate(args) if isinstance(a, Tensor) and a.dim()]
    if name in _PRODUCTS and len(tensors) >= 2:
        factor, other = tensors[-2:]
        for place in (factor, other):
            square = args[place]
            if square.shape[-1] == square.shape[-2]:
                turned = _changed_operand(place, lambda t: t.transpose(-1, -2))
                yield Change(
                    Pattern.TRANSPOSED_OPERAND, f"has factor {place + 1} transposed", turned
                )
        yield from _without_ends(factor, args[factor].shape[-1], -1)
    elif name in _SUMS and tensors:
        named = zip(call.func._schema.arguments, args, strict=False)
        dims = next((value for known, value in named if known.name == "dim"), None)
        dims = [dims] if isinstance(dims, int) else dims or []
        if len(dims) == 1:
            yield from _without_ends(0, args[0].shape[dims[0]], dims[0])


def _without_ends(place: int, size: int, dim: int) -> Iterator[Change]:
    pieces = {"its first element": slice(0, 1), "its last element": slice(size - 1, size)}
    for width in (4, 8, 16, 32, 64, 128):
        if 0 < size // width * width < size:
            pieces[f"what is left beyond a multiple of {width}"] = slice(
                size // width * width, size
            )
    pieces["its second half"] = slice(size // 2, size)
    for words, piece in pieces.items():
        yield Change(
            Pattern.SHORT_REDUCTION,
            f"goes without {words}",
            _changed_operand(place, _zeroed(dim, piece)),
        )


def _zeroed(dim: int, piece: slice) -> Callable[[Tensor], Tensor]:
    def zeroed(tensor: Tensor) -> Tensor:
        copy = tensor.clone()
        copy.movedim(dim, 0)[piece] = 0
        return copy

    return zeroed


def _in_parts(name: str, args: tuple[Any, ...]) -> Iterator[Change]:
    """Scans and softmaxes that begin again in each part of an axis."""
    if name not in _ALONG_AN_AXIS or not isinstance(args[1], int):
        return
    size = args[0].shape[args[1]] if args[0].dim() else 1
    for parts in (2, 4, 8, 16, 32):
        if size % parts == 0 and size > parts:
            words = f"begins again in each of {parts} parts of axis {args[1]}"
            yield Change(Pattern.IN_PARTS, words, _each_part(parts))
            if "softmax" in name:
                words = f"is the mean over {parts} parts of axis {args[1]}, each normalised alone"
                yield Change(Pattern.IN_PARTS, words, _each_part(parts, scale=1 / parts))


def _each_part(parts: int, scale: float = 1.0) -> Apply:
    def apply(call: OperatorCall) -> Tensor:
        first, axis, *others = call.args
        pieces = first.chunk(parts, axis)
        whole = torch.cat([call.with_args(piece, axis, *others) for piece in pieces], axis)
        return whole if scale == 1.0 else whole * scale

    return apply


def _changed_operand(place: int, change: Callable[[Any], Any]) -> Apply:
    return lambda call: call.with_args(
        *call.args[:place], change(call.args[place]), *call.args[place + 1 :]
    )


def _operand(number: int) -> Apply:
    return lambda call: [a for a in call.args if isinstance(a, Tensor)][number].clone()


def _over_other_axes(call: OperatorCall) -> Iterator[Change]:
    args = call.args
    for place, known in enumerate(call.func._schema.arguments[: len(args)]):
        value = args[place]
        if known.name != "dim" or not args or not isinstance(args[0], Tensor):
            continue
        whole = isinstance(value, list | tuple)
        if whole and len(value) != 1:
            continue
        old = (value[0] if whole else value) % max(1, args[0].dim())
        for dim in range(args[0].dim()):
            if dim != old:
                new = [dim] if whole else dim
                words = f"goes over axis {dim} instead"
                yield Change(Pattern.WRONG_AXIS, words, _argument(place, new))


def _argument(place: int, value: Any) -> Apply:
    return _changed_operand(place, lambda _: value)


def _keyword(name: str, value: Any) -> Apply:
    return lambda call: call.func(*call.args, **{**call.kwargs, name: value})


def _swapped(one: int, other: int) -> Apply:
    def apply(call: OperatorCall) -> Any:
        moved = list(call.args)
        moved[one], moved[other] = moved[other], moved[one]
        return call.with_args(*moved)

    return apply


def _function(function: Callable[[Tensor], Tensor]) -> Apply:
    return lambda call: function(call.args[0])


def _other_constants(call: OperatorCall) -> Iterator[Change]:
    code, schema = Pattern.WRONG_CONSTANT, call.func._schema
    for place, (known, value) in enumerate(zip(schema.arguments, call.args, strict=False)):
        if known.name not in ("dim", "keepdim", "dtype"):
            for other, words in _others(value):
                words = f"has {known.name} = {words}"
                yield Change(code, words, _argument(place, other), _turn(other))
    for known in schema.arguments[len(call.args) :]:
        name, value = known.name, call.kwargs.get(known.name, known.default_value)
        if name in ("dim", "keepdim", "dtype", "layout", "device", "pin_memory"):
            continue
        if name == "approximate":
            other = "none" if value == "tanh" else "tanh"
            yield Change(Pattern.OTHER_FUNCTION, f"has {name} = {other}", _keyword(name, other))
        elif name == "correction":
            other = 1 if value == 0 else 0
            yield Change(code, f"has {name} = {other}", _keyword(name, other))
        else:
            for other, words in _others(value):
                words = f"has {name} = {words}"
                yield Change(code, words, _keyword(name, other), _turn(other))


def _turn(constant: Any) -> Turn:
    return Turn.LATE if isinstance(constant, float) else Turn.LAST


def _others(value: Any) -> Iterator[tuple[Any, str]]:
    """Other values to try."""
    if isinstance(value, bool):
        yield not value, str(not value)
    elif isinstance(value, float):
        tried = {*_FIGURES, -value, value * value, abs(value) ** 0.5}
        if value:
            tried.add(1 / value)
        for other in sorted(tried - {value}):
            yield other, f"{other:g}"
    elif isinstance(value, int):
        for other in (0, 1, 2, -value):
            if other != value:
                yield other, str(other)
