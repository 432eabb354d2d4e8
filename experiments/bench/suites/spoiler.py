"""Wrong versions of a PyTorch module: its own forward, with one thing spoiled.

The text of this file is part of the candidates that `wrong_candidate.py` writes, so it imports
PyTorch and nothing of this project. Outputs are spoiled in place: a wrong version must not need
much more memory than the right one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

_CHUNK = 2**24
_COPIES = ("clone", "_to_copy", "copy", "copy_", "contiguous", "lift_fresh")
_PRODUCTS = ("mm", "bmm", "addmm", "baddbmm")


def wrong_version(
    kind: str, right: type[nn.Module], figure: float, right_calls: int
) -> type[nn.Module]:
    """A subclass of the module `right` whose outputs are wrong.

    Args:
        kind: one of `SPOILERS`, or `half`, `tf32`, `missing_term`.
        right: the module's class.
        figure: between 0 and 1: the place of what is wrong, or how large a relative error is.
        right_calls: the outputs of so many calls are not spoiled.
    """

    class Wrong(right):  # type: ignore[misc, valid-type]
        _calls = 0
        _operators = 0
        _left_out = ""

        def forward(self, *arguments: Any) -> Any:
            self._calls += 1
            if kind in ROUNDINGS:
                rounded = ROUNDINGS[kind]
                if kind == "half" and self._calls == 1:
                    for parameter in self.parameters():
                        parameter.copy_(_each_rounded(parameter, rounded))
                return super().forward(
                    *tree_map(lambda value: _each_rounded(value, rounded), arguments)
                )
            if kind == "missing_term":
                # The first call finds out what there is to be left out.
                which = None if self._calls == 1 else int(figure * self._operators)
                with _LeftOut(which) as mode:
                    outputs = super().forward(*arguments)
                self._operators, self._left_out = mode.found, mode.left_out
                return outputs
            outputs = super().forward(*arguments)
            if self._calls <= right_calls:
                return outputs
            lent = [*tree_leaves(arguments), *self.parameters(), *self.buffers()]
            return _spoiled(outputs, lent, lambda y: SPOILERS[kind](y, figure))

    return Wrong


def _spoiled(outputs: Any, lent: list[Any], spoil: Callable[[Tensor], None]) -> Any:
    """The outputs with one tensor spoiled: the first floating one, or else the first."""
    leaves, form = tree_flatten(outputs)
    places = [n for n, leaf in enumerate(leaves) if isinstance(leaf, Tensor) and leaf.numel()]
    place = next((n for n in places if leaves[n].is_floating_point()), places[0])
    y = leaves[place]
    others = {t.untyped_storage().data_ptr() for t in lent if isinstance(t, Tensor)}
    if y.untyped_storage().data_ptr() in others or torch._debug_has_internal_overlap(y):
        y = y.clone(memory_format=torch.contiguous_format)
    spoil(y)
    leaves[place] = y
    return tree_unflatten(leaves, form)


def _at(y: Tensor, first: int, count: int) -> tuple[Tensor, ...]:
    """The indices of `count` elements from number `first` on, whatever the strides."""
    # Not `torch.unravel_index`, which imports a good part of PyTorch's compiler.
    numbers = torch.arange(first, first + count, device=y.device)
    index: list[Tensor] = []
    for size in reversed(y.shape):
        index.append(numbers % size)
        numbers = numbers // size
    return tuple(reversed(index))


def _element(y: Tensor, figure: float) -> None:
    """One element is off by three times the root mean square of all; integers are off by one."""
    number = 1 + int(figure * (y.numel() - 1)) if y.numel() > 1 else 0
    at = _at(y, number, 1)
    if y.dtype is torch.bool:
        y[at] = ~y[at]
    elif not y.is_floating_point():
        y[at] += 1
    else:
        # In fp64: squares of large numbers overflow in fp32.
        off = 3 * float(torch.linalg.vector_norm(y, dtype=torch.float64)) / y.numel() ** 0.5
        usable = 0 < off < float("inf")
        y[at] = torch.where(torch.isfinite(y[at]), y[at] + (off if usable else 1.0), 0.0)


def _tail(y: Tensor, figure: float) -> None:
    """What is left beyond whole blocks of 1024 elements, or else the last seven, is not written."""
    count = y.numel() % 1024 or min(7, y.numel())
    y[_at(y, y.numel() - count, count)] = 0


def _zeros(y: Tensor, figure: float) -> None:
    y.zero_()


def _scale(y: Tensor, figure: float) -> None:
    """The relative error `figure`, of every element alike."""
    if y.is_floating_point():
        y.mul_(1 + figure)


SPOILERS: dict[str, Callable[[Tensor, float], None]] = {
    "element": _element,
    "tail": _tail,
    "zeros": _zeros,
    "scale": _scale,
}


def _half(x: Tensor) -> Tensor:
    return x.half()


def _tf32(x: Tensor) -> Tensor:
    """Ten bits of mantissa, rounded to nearest."""
    return ((x.float().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


ROUNDINGS: dict[str, Callable[[Tensor], Tensor]] = {"half": _half, "tf32": _tf32}


def _each_rounded(value: Any, rounded: Callable[[Tensor], Tensor]) -> Any:
    """A floating tensor rounded and in its own dtype again, chunk by chunk; others as they are."""
    if not isinstance(value, Tensor) or not value.is_floating_point():
        return value
    result = torch.empty(value.shape, dtype=value.dtype, device=value.device)
    for target, source in zip(
        result.view(-1).split(_CHUNK), value.reshape(-1).split(_CHUNK), strict=True
    ):
        target.copy_(rounded(source))
    return result


class _LeftOut(TorchDispatchMode):
    """Counts the operators that can be left out, or of which a term can, and leaves one out.

    An operator is left out where its first operand could be its result: that operand is passed on.
    Of a product the last term of each sum is left out, of a convolution the last weight.
    """

    def __init__(self, which: int | None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found = 0
        self.left_out = ""
        self._which = which

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: asking to be skipped imports PyTorch's compiler."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func._schema.name.removeprefix("aten::")
        operands = [a for a in args if isinstance(a, Tensor)]
        if not operands or not operands[0].is_floating_point() or name in _COPIES:
            return func(*args, **kwargs)
        alias = next((r.alias_info for r in func._schema.returns), None)
        if alias is not None:
            # In place, or a view.
            left_out = alias.is_write and self._is_it(name)
            return args[0] if left_out else func(*args, **kwargs)
        if name in _PRODUCTS:
            if self._is_it(name):
                args = _one_term_less(args)
            return func(*args, **kwargs)
        if name == "convolution":
            if self._is_it(name):
                args = (args[0], _last_weight_zero(args[1]), *args[2:])
            return func(*args, **kwargs)
        result = func(*args, **kwargs)
        made = result[0] if isinstance(result, tuple) else result
        like = isinstance(made, Tensor) and made.is_floating_point()
        if like and made.shape == operands[0].shape and self._is_it(name):
            made.copy_(operands[0])
        return result

    def _is_it(self, name: str) -> bool:
        self.found += 1
        if self.found - 1 != self._which:
            return False
        self.left_out = name
        return True


def _one_term_less(args: Any) -> Any:
    left, right = args[-2:]
    terms = left.shape[-1] - 1
    return (*args[:-2], left.narrow(-1, 0, terms), right.narrow(-2, 0, terms))


def _last_weight_zero(weight: Tensor) -> Tensor:
    weight = weight.clone(memory_format=torch.contiguous_format)
    weight.flatten(1)[:, -1] = 0
    return weight
