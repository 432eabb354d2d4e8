"""Operators and modules whose main loop stays with PyTorch, and operators that only change a shape.

For a call that stays with PyTorch the tuner only has to know the result's shape; formulas are those
of PyTorch's documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any

from agent.tuner.tracing.graph import CannotTrace, Kind, Node, Shape, broadcast, library, view
from agent.tuner.tracing.operators import FORMULAS, Operator

Size = int | Sequence[int]


def spread(value: Size, rank: int) -> tuple[int, ...]:
    """A size given once for all dimensions, or one for each."""
    return (value,) * rank if isinstance(value, int) else tuple(value)


# Shapes of results; the arguments are those of the module or function of that name ----------------


def linear(x: Shape, in_features: int, out_features: int, bias: bool = True) -> Shape:
    if x[-1] != in_features:
        raise ValueError(f"{in_features} features of {list(x)}")
    return (*x[:-1], out_features)


def conv(
    x: Shape,
    in_channels: int,
    out_channels: int,
    kernel_size: Size,
    stride: Size = 1,
    padding: Size = 0,
    dilation: Size = 1,
    groups: int = 1,
    bias: bool = True,
) -> Shape:
    rank = len(x) - 2
    k, s, p, d = (spread(size, rank) for size in (kernel_size, stride, padding, dilation))
    sizes = [(x[2 + i] + 2 * p[i] - d[i] * (k[i] - 1) - 1) // s[i] + 1 for i in range(rank)]
    if x[1] != in_channels or min(sizes) < 1:
        raise ValueError(f"a convolution of {list(x)}")
    return (x[0], out_channels, *sizes)


def conv_transpose(
    x: Shape,
    in_channels: int,
    out_channels: int,
    kernel_size: Size,
    stride: Size = 1,
    padding: Size = 0,
    output_padding: Size = 0,
    groups: int = 1,
    bias: bool = True,
) -> Shape:
    rank = len(x) - 2
    k, s, p, o = (spread(size, rank) for size in (kernel_size, stride, padding, output_padding))
    sizes = [(x[2 + i] - 1) * s[i] - 2 * p[i] + k[i] + o[i] for i in range(rank)]
    return (x[0], out_channels, *sizes)


# Calls --------------------------------------------------------------------------------------------


def pool(
    name: str, input: Node, kernel_size: Size, stride: Size | None = None, padding: Size = 0
) -> Node:
    steps, channels = kernel_size if stride is None else stride, input.shape[1]
    shape = conv(input.shape, channels, channels, kernel_size, steps, padding)
    return library(f"F.{name}({{0}}, {kernel_size}, {stride}, {padding})", [input], shape)


def diag(input: Node) -> Node:
    if len(input.shape) != 1:
        raise CannotTrace("the diagonal of a matrix")
    return replace(library("torch.diag({0})", [input], input.shape * 2), op="diag")


def matmul(input: Node, other: Node) -> Node:
    """A matrix product; one with a diagonal matrix becomes a scaling of rows or columns."""
    if len(input.shape) < 2 or len(other.shape) < 2 or input.shape[-1] != other.shape[-2]:
        raise CannotTrace(f"the product of {list(input.shape)} and {list(other.shape)}")
    if input.op == "diag":
        return view(input.args[0], (input.shape[0], 1)) * other
    if other.op == "diag":
        return input * other.args[0]
    shape = (*broadcast(input.shape[:-2], other.shape[:-2]), input.shape[-2], other.shape[-1])
    return library("torch.matmul({0}, {1})", [input, other], shape)


def adaptive_avg_pool(rank: int, input: Node, output_size: Size) -> Node:
    shape = (*input.shape[:-rank], *spread(output_size, rank))
    return library(f"F.adaptive_avg_pool{rank}d({{0}}, {output_size})", [input], shape)


# Shapes -------------------------------------------------------------------------------------------


def sizes_of(arguments: tuple[Any, ...]) -> tuple[int, ...]:
    """`x.view(2, 3)` or `x.view((2, 3))`."""
    if len(arguments) == 1 and isinstance(arguments[0], (tuple, list)):
        return tuple(arguments[0])
    return tuple(arguments)


def reshape(input: Node, *shape: Any) -> Node:
    """At most one -1."""
    sizes = sizes_of(shape)
    if -1 in sizes:
        rest = -prod(sizes)
        if rest == 0 or sizes.count(-1) > 1:
            raise ValueError(f"view of {input.shape} as {sizes}")
        sizes = tuple(input.numel // rest if n == -1 else n for n in sizes)
    return view(input, sizes)


def flatten(input: Node, start_dim: int = 0, end_dim: int = -1) -> Node:
    shape, rank = input.shape, len(input.shape)
    start, end = start_dim % rank, end_dim % rank
    return view(input, (*shape[:start], prod(shape[start : end + 1]), *shape[end + 1 :]))


def unsqueeze(input: Node, dim: int) -> Node:
    at = dim % (len(input.shape) + 1)
    return view(input, (*input.shape[:at], 1, *input.shape[at:]))


def squeeze(input: Node, dim: int | None = None) -> Node:
    gone = range(len(input.shape)) if dim is None else [dim % len(input.shape)]
    return view(input, tuple(n for d, n in enumerate(input.shape) if n != 1 or d not in gone))


def transpose(input: Node, dim0: int = -2, dim1: int = -1) -> Node:
    rank = len(input.shape)
    order = list(range(rank))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    text = f"{{0}}.permute({', '.join(map(str, order))})"
    return library(text, (input,), tuple(input.shape[d] for d in order))


def chunk(input: Node, chunks: int, dim: int = 0) -> tuple[Node, ...]:
    axis = dim % len(input.shape)
    before, size, after = input.shape[:axis], input.shape[axis], input.shape[axis + 1 :]
    part = -(-size // chunks)
    lengths = {start: min(part, size - start) for start in range(0, size, part)}
    return tuple(
        library(f"{{0}}.narrow({axis}, {start}, {length})", [input], (*before, length, *after))
        for start, length in lengths.items()
    )


def index(input: Node, key: Any) -> Node:
    """`x[key]` of whole slices and None."""
    parts = list(key) if isinstance(key, tuple) else [key]
    if any(p is not None and p != slice(None) for p in parts):
        raise CannotTrace("an index that picks elements")
    sizes = iter(input.shape)
    return view(input, (*(1 if p is None else next(sizes, 0) for p in parts), *sizes))


OPERATORS: Mapping[str, Operator] = {
    **FORMULAS,
    **dict.fromkeys(("matmul", "bmm", "mm"), matmul),
    "diag": diag,
    **{f"avg_pool{n}d": partial(pool, f"avg_pool{n}d") for n in (1, 2, 3)},
    **{f"max_pool{n}d": partial(pool, f"max_pool{n}d") for n in (1, 2, 3)},
    **{f"adaptive_avg_pool{n}d": partial(adaptive_avg_pool, n) for n in (1, 2, 3)},
    **dict.fromkeys(("view", "reshape"), reshape),
    "flatten": flatten,
    "unsqueeze": unsqueeze,
    "squeeze": squeeze,
    "transpose": transpose,
    **dict.fromkeys(("t", "T", "mT"), transpose),
    "chunk": chunk,
    "size": lambda input, dim=None: input.shape if dim is None else input.shape[dim],
    "dim": lambda input: len(input.shape),
    "[]": index,
}
"""Bare name (`relu` of `torch.relu`, `F.relu`, `x.relu`) -> what it does."""


def operator_named(name: str) -> Operator:
    """CannotTrace where the bare name is unknown."""
    if name not in OPERATORS:
        raise CannotTrace(f"the operator `{name}`")
    return OPERATORS[name]


# Modules ------------------------------------------------------------------------------------------

LEFT: Mapping[str, Callable[..., Shape]] = {
    "Linear": linear,
    **{f"Conv{n}d": conv for n in (1, 2, 3)},
    **{f"ConvTranspose{n}d": conv_transpose for n in (1, 2, 3)},
    "GroupNorm": lambda x, *_, **__: x,
    **{f"BatchNorm{n}d": lambda x, *_, **__: x for n in (1, 2, 3)},
    **{f"InstanceNorm{n}d": lambda x, *_, **__: x for n in (1, 2, 3)},
}
"""Modules that stay with PyTorch -> the shape of their result."""

ALIKE = {op.replace("_", ""): op for op in OPERATORS if op not in ("layer_norm", "flatten")}
"""Module in lower case -> the operator that takes what its constructor takes, after the tensors."""


@dataclass
class Layer:
    """One instance of a ready-made module."""

    name: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    path: str = ""
    """The Python expression that names it, e.g. `self.net[0]`; known once the model stands."""

    def __call__(self, *inputs: Any) -> Any:
        """What its forward returns; CannotTrace where it is unknown."""
        if not self.path and (self.name in LEFT or self.name == "LayerNorm"):
            raise CannotTrace(f"an `nn.{self.name}` made inside `forward`")
        if self.name in LEFT:
            shape = LEFT[self.name](inputs[0].shape, *self.args, **self.kwargs)
            return library(f"{self.path}({{0}})", inputs, shape)
        if self.name == "LayerNorm":
            return self._layer_norm(*inputs, *self.args, **self.kwargs)
        if self.name.lower() not in ALIKE:
            raise CannotTrace(f"the module `nn.{self.name}`")
        return OPERATORS[ALIKE[self.name.lower()]](*inputs, *self.args, **self.kwargs)

    def _layer_norm(
        self, x: Node, normalized_shape: Size, eps: float = 1e-5, elementwise_affine: bool = True
    ) -> Any:
        shape = spread(normalized_shape, 1)
        names = ("weight", "bias") if elementwise_affine else ()
        affine = [Node(Kind.WEIGHT, shape, name=f"{self.path}.{name}") for name in names]
        return OPERATORS["layer_norm"](x, shape, *affine, eps=eps)
