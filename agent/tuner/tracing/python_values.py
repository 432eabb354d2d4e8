"""What the interpreter's names stand for besides plain Python values and tensors."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from agent.tuner.errors import CannotTrace
from agent.tuner.tracing.graph import Node
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

    node: ast.FunctionDef | ast.Lambda
    scope: dict[str, Any]
    owner: Any = None


@dataclass(eq=False)
class Class:
    """A class of the file."""

    node: ast.ClassDef
    scope: dict[str, Any]


@dataclass(eq=False)
class Instance:
    """An instance of a class of the file, or one of PyTorch's containers."""

    cls: Class | None
    attributes: dict[str, Any] = field(default_factory=dict)
    items: list[Any] | None = None
    """What a Sequential or ModuleList holds."""
    path: str = ""
    training: bool = True


@dataclass(frozen=True)
class Parameter:
    """A tensor that an instance will own: parameter, buffer, or plain attribute."""

    value: Node


def set_mode(module: Layer | Instance, name: str, mode: Any = True) -> Layer | Instance:
    """`eval()` and `train()` of a module and of all below it; `to()` changes nothing here."""
    if name != "to":
        module.training = name == "train" and bool(mode)
    if isinstance(module, Instance):
        for child in (*module.attributes.values(), *(module.items or ())):
            if isinstance(child, (Layer, Instance)):
                set_mode(child, name, mode)
    return module


def plainly(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Ordinary Python on ordinary values; what fails there is beyond us."""
    try:
        return function(*args, **kwargs)
    except (TypeError, ValueError, IndexError, KeyError, ZeroDivisionError, OverflowError) as error:
        raise CannotTrace(f"a computation ({error})") from None
