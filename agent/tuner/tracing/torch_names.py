"""What PyTorch's functions, methods and classes do to nodes, found by their names."""

from __future__ import annotations

import math
from typing import Any

from agent.tuner.errors import CannotTrace
from agent.tuner.tracing.graph import Kind, Node
from agent.tuner.tracing.layers import Layer
from agent.tuner.tracing.library import sizes_of
from agent.tuner.tracing.operators import apply
from agent.tuner.tracing.python_values import Dotted, Instance, Method, plainly

FRESH = "(fresh)"
"""The name of tensors that the file makes: only their shape counts."""


def attribute(owner: Node, name: str) -> Any:
    """`tensor.name`."""
    if name in ("shape", "dtype", "device"):
        return owner.shape if name == "shape" else Dotted(f"tensor.{name}")
    return apply(name, (owner,)) if name in ("T", "mT") else Method(name, owner)


def call_method(method: Method, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`tensor.name(...)`."""
    x = method.owner
    if method.name == "size":
        return x.shape[args[0]] if args else x.shape
    if method.name == "dim":
        return len(x.shape)
    return apply(method.name, (x, *args), kwargs)


def call_function(path: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`torch.name(...)` and the like, by its whole dotted path."""
    module, _, name = path.rpartition(".")
    if module == "math":
        return plainly(getattr(math, name, None), *args, **kwargs)
    if name == "Parameter":
        return args[0]
    if name == "Sequential":
        return Instance(None, items=args)
    if module == "torch.nn":
        return Layer(name, args, kwargs)
    if name == "tensor" and isinstance(args[0], (int, float)):
        return Node(Kind.INPUT, (), name=FRESH)
    if name in ("rand", "randn", "ones", "zeros", "full"):
        sizes = args[0] if name == "full" else sizes_of(args)
        return Node(Kind.INPUT, tuple(sizes), name=FRESH)
    if not path.startswith("torch."):
        raise CannotTrace(f"`{path}`")
    return apply(name, args, kwargs)
