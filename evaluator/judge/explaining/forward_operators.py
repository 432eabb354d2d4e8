"""A forward call as the operators that make something: listed, looked at, or one changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from evaluator.judge.explaining.operation_changes import Change, changes
from evaluator.judge.operator_mode import OperatorCall, OperatorMode, tensors_in

_TURNS = ("t", "transpose", "permute")


class _Counting(OperatorMode):
    """Counts the operators that make something, from 1 on."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def result_of(self, call: OperatorCall) -> Any:
        """What the operator gives, counted."""
        result = call.run()
        if _is_view(call, result):
            return result
        self.count += 1
        return self._made(call, result)

    def _made(self, call: OperatorCall, result: Any) -> Any:
        """What to give on in place of `result`."""
        return result


class Recorder(_Counting):
    """Lists the operators of a call: what each is called, and how it could be changed."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.changes: list[list[Change]] = []

    def _made(self, call: OperatorCall, result: Any) -> Any:
        self.names.append(_told(call))
        self.changes.append(list(changes(call, result)))
        return result


class Onlooker(_Counting):
    """Shows each intermediate result, with its number, to `look`."""

    def __init__(self, look: Callable[[int, Any], None]) -> None:
        super().__init__()
        self._look = look

    def _made(self, call: OperatorCall, result: Any) -> Any:
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

    def _made(self, call: OperatorCall, result: Any) -> Any:
        if self.count != self._number:
            return result
        for buffer, before in self._buffers:
            buffer.copy_(before)
        other = self._change.apply(call)
        if tensors_in(other)[0].shape != tensors_in(result)[0].shape:
            raise ValueError("another shape")
        return other


def _is_view(call: OperatorCall, result: Any) -> bool:
    """Whether an operator only looks at a tensor in another way. Transposing a square one is more:
    it can be forgotten."""
    if call.func._schema.is_mutable or not isinstance(result, Tensor):
        return False
    if call.name in _TURNS and result.shape == call.args[0].shape:
        return False
    place = result.untyped_storage().data_ptr()
    return any(t.untyped_storage().data_ptr() == place for t in tensors_in(call.args))


def _told(call: OperatorCall) -> str:
    """`mul by 0.125`; `sum over 1`; `mm`."""
    return f"{call.plain_name}{''.join(_figures(call))}"


def _figures(call: OperatorCall) -> Iterator[str]:
    for known, value in zip(call.func._schema.arguments, call.args, strict=False):
        if known.name == "dim" and value is not None:
            yield f" over {value}"
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f" by {value:g}"
