"""The table of PyTorch operators that the tuner understands, filled by the modules it imports."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from agent.tuner.errors import CannotTrace
from agent.tuner.graph import Builder, Node

Operand = Node | int | float | bool
Operator = Callable[..., Any]

OPERATORS: dict[str, Operator] = {}
"""Bare name (`softmax` of `torch.softmax`, `F.softmax`, `x.softmax`) -> what it does."""


Registered = TypeVar("Registered", bound=Operator)


def known(*names: str) -> Callable[[Registered], Registered]:
    """Register an operator under its names."""

    def register(operator: Registered) -> Registered:
        OPERATORS.update(dict.fromkeys(names, operator))
        return operator

    return register


def lift(b: Builder, value: Operand) -> Node:
    """A node, made of a number where it is one."""
    if isinstance(value, Node):
        return value
    if isinstance(value, bool):
        return b.const(value, "bool")
    if isinstance(value, int):
        return b.const(value, "int64")
    if isinstance(value, float):
        return b.const(value)
    raise CannotTrace(f"a {type(value).__name__} where a tensor is expected")


def apply(b: Builder, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call an operator by its bare name; CannotTrace where it or its arguments are unknown."""
    from agent.tuner import library, pointwise, rowwise  # noqa: F401 (they fill the table)

    operator = OPERATORS.get(name)
    if operator is None:
        raise CannotTrace(f"the operator `{name}`")
    try:
        bound = inspect.signature(operator).bind(b, *args, **kwargs)
    except TypeError as error:
        raise CannotTrace(f"the arguments of `{name}` ({error})") from None
    try:
        return operator(*bound.args, **bound.kwargs)
    except (ValueError, IndexError) as error:
        raise CannotTrace(f"`{name}` on these shapes ({error})") from None
