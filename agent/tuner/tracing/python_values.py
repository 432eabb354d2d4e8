"""What the interpreter's names stand for besides plain Python values and tensors."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from agent.tuner.errors import CannotTrace
from agent.tuner.tracing.graph import Kind, Node
from agent.tuner.tracing.layers import Layer


@dataclass(frozen=True)
class Dotted:
    """A name in PyTorch or the standard library, e.g. `torch.nn.functional.relu`."""

    path: str


@dataclass(frozen=True)
class Method:
    """An operator bound to a tensor."""

    name: str
    owner: Node


@dataclass(eq=False)
class Function:
    """A function or method of the file."""

    node: ast.FunctionDef
    owner: Instance | None = None


@dataclass(eq=False)
class Class:
    """A class of the file."""

    node: ast.ClassDef

    def method(self, name: str) -> ast.FunctionDef | None:
        """Its definition, if it has one."""
        found = (s for s in self.node.body if isinstance(s, ast.FunctionDef) and s.name == name)
        return next(found, None)


@dataclass(eq=False)
class Instance:
    """An instance of a class of the file, or a Sequential."""

    cls: Class | None
    attributes: dict[str, Any] = field(default_factory=dict)
    items: tuple[Any, ...] = ()
    """What a Sequential holds."""


def place(value: Any, path: str) -> Any:
    """`value` once it is known by which Python expression it is reached: tensors are weights."""
    if isinstance(value, Node):
        return Node(Kind.WEIGHT, value.shape, value.dtype, name=path)
    if isinstance(value, Layer):
        value.path = path
    elif isinstance(value, Instance):
        for index, item in enumerate(value.items):
            place(item, f"{path}[{index}]")
        for name, item in value.attributes.items():
            value.attributes[name] = place(item, f"{path}.{name}")
    return value


def plainly(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Ordinary Python on ordinary values; what fails there is beyond us."""
    try:
        return function(*args, **kwargs)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise CannotTrace(f"a computation ({error})") from None
