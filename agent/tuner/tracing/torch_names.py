"""What PyTorch's functions, methods and classes do to nodes, found by their names."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from agent.tuner.errors import CannotTrace
from agent.tuner.tracing.graph import Kind, Node
from agent.tuner.tracing.layers import Layer
from agent.tuner.tracing.library import sizes_of
from agent.tuner.tracing.operators import apply
from agent.tuner.tracing.python_values import Sequential

FRESH = "(fresh)"
"""The name of tensors that the file makes: only their shape counts."""


@dataclass(frozen=True)
class Dotted:
    """A name in PyTorch or the standard library, e.g. `torch.nn.functional.relu`."""

    path: str

    def attribute(self, name: str) -> Any:
        """`self.name`."""
        if self.path == "math":
            return getattr(math, name, None)
        return Dotted(f"{self.path}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What PyTorch would return; CannotTrace where the name is unknown."""
        module, _, name = self.path.rpartition(".")
        if name == "Parameter":
            return args[0]
        if name == "Sequential":
            return Sequential(args)
        if module == "torch.nn":
            return Layer(name, args, kwargs)
        if name == "tensor" and isinstance(args[0], (int, float)):
            return Node(Kind.INPUT, (), name=FRESH)
        if name in ("rand", "randn", "ones", "zeros", "full"):
            sizes = args[0] if name == "full" else sizes_of(args)
            return Node(Kind.INPUT, tuple(sizes), name=FRESH)
        if not module.startswith("torch"):
            raise CannotTrace(f"`{self.path}`")
        return apply(name, args, kwargs)


def attribute(x: Node, name: str) -> Any:
    """`tensor.name`."""
    if name == "shape":
        return x.shape
    if name == "size":
        return lambda dim=None: x.shape if dim is None else x.shape[dim]
    if name == "dim":
        return lambda: len(x.shape)
    if name in ("T", "mT"):
        return apply(name, (x,))
    return lambda *args, **kwargs: apply(name, (x, *args), kwargs)
