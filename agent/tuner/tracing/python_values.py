"""What the interpreter's names stand for besides plain Python values and tensors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from agent.tuner.errors import CannotTrace
from agent.tuner.tracing.graph import Kind, Node
from agent.tuner.tracing.layers import Layer


@dataclass(eq=False)
class Instance:
    """An instance of a class of the file, with its methods among the attributes."""

    attributes: dict[str, Any] = field(default_factory=dict)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What its forward returns."""
        return self.attributes["forward"](*args, **kwargs)


@dataclass(eq=False)
class Sequential:
    """PyTorch's container of modules that follow each other."""

    items: tuple[Any, ...]

    def __call__(self, x: Any) -> Any:
        """What the last module returns."""
        for item in self.items:
            x = item(x)
        return x


def place(value: Any, path: str) -> Any:
    """`value` once it is known by which Python expression it is reached: tensors are weights."""
    if isinstance(value, Node):
        return Node(Kind.WEIGHT, value.shape, value.dtype, name=path)
    if isinstance(value, Layer):
        value.path = path
    elif isinstance(value, Sequential):
        value.items = tuple(place(item, f"{path}[{i}]") for i, item in enumerate(value.items))
    elif isinstance(value, Instance):
        for name, item in value.attributes.items():
            value.attributes[name] = place(item, f"{path}.{name}")
    return value


def plainly(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Ordinary Python on ordinary values; what fails there is beyond us."""
    try:
        return function(*args, **kwargs)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise CannotTrace(f"a computation ({error})") from None
