"""A forward call as the operators that make something: listed, looked at, or one changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils._pytree import tree_leaves

from evaluator.judge.explaining.operation_changes import Change, changes
from evaluator.judge.operator_mode import OperatorMode, operator_name

_TURNS = ("aten::t", "aten::transpose", "aten::permute")


class _Counting(OperatorMode):
    """Counts the operators that make something, from 1 on."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def run(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the operator gives, counted."""
        result = func(*args, **kwargs)
        if _is_view(func, args, result):
            return result
        self.count += 1
        return self._made(func, args, kwargs, result)

    def _made(
        self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> Any:
        """What to give on in place of `result`."""
        return result


class Recorder(_Counting):
    """Lists the operators of a call: what each is called, and how it could be changed."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.changes: list[list[Change]] = []

    def _made(
        self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> Any:
        self.names.append(_told(func, args))
        self.changes.append(list(changes(func, args, kwargs, result)))
        return result


class Onlooker(_Counting):
    """Shows each intermediate result, with its number, to `look`."""

    def __init__(self, look: Callable[[int, Any], None]) -> None:
        super().__init__()
        self._look = look

    def _made(
        self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> Any:
        with torch.utils._python_dispatch._disable_current_modes():
            self._look(self.count, result)
        return result


class Altered(_Counting):
    """Changes the operator with that number. Raises `ValueError` where that leads to another shape,
    and whatever the changed operator and those after it raise."""

    def __init__(self, number: int, change: Change, model: torch.nn.Module) -> None:
        """`model`: the operator may have moved its buffers, which the changed one finds again."""
        super().__init__()
        self._number = number
        self._change = change
        self._buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]

    def _made(
        self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> Any:
        if self.count != self._number:
            return result
        for buffer, before in self._buffers:
            buffer.copy_(before)
        other = self._change.apply(func, args, kwargs)
        first, mine = _first(other), _first(result)
        if first.shape != mine.shape:
            raise ValueError("another shape")
        return other


def _is_view(func: OpOverload, args: tuple[Any, ...], result: Any) -> bool:
    """Whether an operator only looks at a tensor in another way. Transposing a square one is more:
    it can be forgotten."""
    if func._schema.is_mutable or not isinstance(result, Tensor):
        return False
    if str(func._schema.name) in _TURNS and result.shape == args[0].shape:
        return False
    place = result.untyped_storage().data_ptr()
    return any(
        isinstance(t, Tensor) and t.untyped_storage().data_ptr() == place for t in tree_leaves(args)
    )


def _first(result: Any) -> Tensor:
    return next(t for t in tree_leaves(result) if isinstance(t, Tensor))


def _told(func: OpOverload, args: tuple[Any, ...]) -> str:
    """`mul by 0.125`; `sum over 1`; `mm`."""
    return f"{operator_name(func).strip('_')}{''.join(_figures(func, args))}"


def _figures(func: OpOverload, args: tuple[Any, ...]) -> Iterator[str]:
    for known, value in zip(func._schema.arguments, args, strict=False):
        if known.name == "dim" and value is not None:
            yield f" over {value}"
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f" by {value:g}"
