"""`torch.rand(...)` and its kin: only shape and dtype count, except for constants."""

from __future__ import annotations

from typing import Any

from agent.tuner.errors import CannotTrace
from agent.tuner.tracing.apply import apply
from agent.tuner.tracing.graph import Builder, Kind, Node
from agent.tuner.tracing.python_values import Dotted

CREATION = {"rand": "float32", "randn": "float32", "empty": "float32", "normal": "float32"}
PLACED = ("arange", "linspace", "zeros", "ones")
CONSTANT = {"zeros": 0.0, "ones": 1.0}


def create(b: Builder, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Node | None:
    """`torch.rand(...)` and its kin: only shape and dtype count. None: it is none of these."""
    dtype = _dtype(kwargs.get("dtype"))
    if name in CREATION or name in CONSTANT:
        shape = kwargs.get("size", args[0] if args and isinstance(args[0], (tuple, list)) else args)
        sizes = tuple(int(n) for n in shape)
        if name in CONSTANT and dtype in ("", "float32"):
            return b.full(sizes, CONSTANT[name])
        return _fresh(sizes, dtype or "float32")
    if name == "full":
        return b.full(tuple(args[0]), float(args[1]))
    if name == "randint":
        shape = next((a for a in (*args, kwargs.get("size")) if isinstance(a, (tuple, list))), ())
        return _fresh(tuple(shape), dtype or "int64")
    if name == "randperm" or name == "arange":
        stop = args[1] if len(args) > 1 else args[0]
        start = args[0] if len(args) > 1 else 0
        step = args[2] if len(args) > 2 else 1
        if not all(isinstance(v, int) for v in (start, stop, step)):
            raise CannotTrace("a range of fractions")
        return _fresh((len(range(start, stop, step)),), dtype or "int64")
    if name == "linspace":
        return _fresh((kwargs.get("steps", args[-1]),), dtype or "float32")
    if name in ("rand_like", "randn_like", "empty_like"):
        return _fresh(args[0].shape, dtype or args[0].dtype)
    if name in ("tensor", "as_tensor"):
        return _fresh(_nested_shape(args[0]), dtype or _element_dtype(args[0]))
    return None


def _fresh(shape: tuple[int, ...], dtype: str) -> Node:
    return Node(Kind.INPUT, shape, dtype, name="fresh")


def _dtype(value: Any) -> str:
    if not isinstance(value, Dotted):
        return ""
    name = value.path.rpartition(".")[2]
    return {"long": "int64", "float": "float32", "dtype": "float32"}.get(name, name)


def _nested_shape(value: Any) -> tuple[int, ...]:
    if isinstance(value, (list, tuple)):
        return (len(value), *(_nested_shape(value[0]) if value else ()))
    return ()


def _element_dtype(value: Any) -> str:
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float32"


def cast(b: Builder, x: Node, dtype: str) -> Node:
    """`x` as another dtype, where that is one of ours; `dtype` may be dotted."""
    name = dtype.rpartition(".")[2]
    if name in ("float", "float32"):
        result: Node = apply(b, "float", (x,), {})
        return result
    if name in ("long", "int64") and x.dtype == "int64":
        return x
    raise CannotTrace(f"a cast to {name}")
