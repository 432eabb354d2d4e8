"""What PyTorch's functions, methods and classes do to nodes, found by their names."""

from __future__ import annotations

import math
from typing import Any

from agent.tuner.errors import CannotTrace
from agent.tuner.tracing.apply import apply
from agent.tuner.tracing.creation import PLACED, cast, create
from agent.tuner.tracing.graph import Builder, Kind, Node
from agent.tuner.tracing.layers import make
from agent.tuner.tracing.python_values import Dotted, Instance, Method, plainly


class TorchNames:
    """PyTorch as far as it is known; `builder` receives the operations."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.anchor: Node | None = None
        """While forward runs: a tensor on its device. Before, tensors' values don't matter."""

    def attribute(self, owner: Node, name: str) -> Any:
        """`tensor.name`."""
        if name == "shape":
            return owner.shape
        if name == "ndim":
            return len(owner.shape)
        if name in ("T", "mT"):
            return apply(self.builder, name, (owner,), {})
        if name in ("dtype", "device"):
            return Dotted(f"tensor.{name}")
        if name == "data":
            return owner
        return Method(name, owner)

    def call_method(self, method: Method, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`tensor.name(...)`."""
        x = method.owner
        if method.name in ("size", "dim", "numel", "ndimension"):
            if method.name == "size":
                return x.shape[args[0]] if args else x.shape
            return x.numel if method.name == "numel" else len(x.shape)
        if method.name in ("to", "type_as", "requires_grad_", "cuda", "cpu"):
            if any(isinstance(a, Dotted) and a.path.startswith("torch.") for a in args):
                return cast(self.builder, x, str(args[0].path))
            return x
        if method.name in ("long", "int", "half", "double", "bfloat16", "bool"):
            return cast(self.builder, x, method.name)
        return apply(self.builder, method.name, (x, *args), kwargs)

    def call(self, path: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`torch.name(...)` and the like, by its whole dotted path."""
        name = path.rpartition(".")[2]
        if path.startswith("torch.nn.") and not path.startswith(
            ("torch.nn.functional.", "torch.nn.init.")
        ):
            return self._call_nn(name, args, kwargs)
        if path.startswith("torch.nn.init.") or name == "manual_seed":
            return None
        if path.startswith("math."):
            return plainly(getattr(math, name, None), *args, **kwargs)
        if self.anchor is not None and name in PLACED:
            return self._placed(name, args, kwargs)
        made = create(self.builder, name, args, kwargs)
        if made is not None:
            if self.anchor is not None and made.kind is Kind.INPUT:
                raise CannotTrace(f"`torch.{name}` inside `forward`")
            return made
        if not path.startswith("torch."):
            raise CannotTrace(f"`{path}`")
        return apply(self.builder, name, args, kwargs)

    def _placed(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Node:
        """A tensor that forward makes and whose values are always the same."""
        assert self.anchor is not None
        like = create(self.builder, name, args, kwargs)
        if like is None or like.kind is Kind.CONST:
            assert like is not None
            return like
        options = {k: v for k, v in kwargs.items() if k not in ("device", "dtype")}
        words = [*map(repr, args), *(f"{k}={v!r}" for k, v in options.items())]
        text = f"torch.{name}({', '.join(words)}, dtype=torch.{like.dtype}, device={{0}}.device)"
        return self.builder.library(text, (self.anchor,), like.shape, like.dtype)

    def _call_nn(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if name in ("Parameter", "Buffer"):
            return args[0]
        if name in ("Sequential", "ModuleList"):
            items = list(args[0]) if name == "ModuleList" and args else list(args)
            return Instance(None, items=items)
        return make(name, args, kwargs)
