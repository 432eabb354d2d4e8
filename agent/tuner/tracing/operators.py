"""The table of PyTorch operators that the tuner understands; `apply.py` imports what fills it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from agent.tuner.errors import CannotTrace
from agent.tuner.tracing.graph import Builder, Node

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
