"""What a reference module computes: a straight line of primitive operations over known shapes.

The tracer (`trace.py`) makes it from the module's syntax tree; `partition.py` cuts it into fused
kernels (`fused.py`) and library calls; the emitters (`cpp.py`, ...) write those out.

Composite operations (softmax, layer norm, losses, ...) never appear: the tracer spells them in
primitives, so whatever a user composes by hand and the ready-made operator look alike here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import prod

Shape = tuple[int, ...]


class Kind(StrEnum):
    """What sort of operation a node is; decides who carries it out."""

    INPUT = "input"
    """An argument of `forward`; `name` is the argument's."""
    WEIGHT = "weight"
    """A parameter or buffer; `name` is the Python expression, e.g. `self.norm.weight`."""
    CONST = "const"
    """The number `value`; its shape is `()`, or that of the tensor that it fills."""
    IOTA = "iota"
    """The index along dimension `dim`, with shape 1 everywhere else (int64)."""
    POINTWISE = "pointwise"
    """`op` applied to broadcast operands; the operations are those of `expression.py`."""
    REDUCE = "reduce"
    """`op` (sum, max, min, prod, argmax, argmin) over `dims`, which stay with size 1."""
    VIEW = "view"
    """The same numbers in the same order with another shape: free."""
    LIBRARY = "library"
    """Stays in PyTorch: `call` is a Python format string over the operands `{0}`, `{1}`, ..."""


@dataclass(frozen=True, eq=False)
class Node:
    """One value. Compared and hashed by identity."""

    kind: Kind
    shape: Shape
    dtype: str = "float32"
    """`float32`, `int64` or `bool`; anything else never enters a fused kernel."""
    args: tuple[Node, ...] = ()
    op: str = ""
    name: str = ""
    value: float = 0.0
    dims: tuple[int, ...] = ()
    """Non-negative dimensions, ascending (REDUCE, IOTA)."""
    call: str = ""
    random: bool = False
    """Two equal calls give two results."""
    contiguous: bool = True
    """False where PyTorch may hand over a strided tensor (library results such as a transpose)."""

    @property
    def numel(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def is_leaf(self) -> bool:
        """Nothing has to be computed for it."""
        return self.kind in (Kind.INPUT, Kind.WEIGHT, Kind.CONST, Kind.IOTA)

    def __repr__(self) -> str:
        """Short enough to read in a failing test."""
        label = self.op or self.name or self.call or (f"{self.value}" if not self.args else "")
        return f"<{self.kind} {label} {list(self.shape)}>"


@dataclass(frozen=True)
class Graph:
    """A whole forward pass."""

    arguments: tuple[str, ...]
    """Names of forward's arguments, in order (also those that no node uses)."""
    outputs: tuple[Node, ...]
    returns: str
    """How forward returns: a format string over the outputs, e.g. `{0}` or `({0}, {1})`."""

    def nodes(self) -> list[Node]:
        """Every node that an output needs, operands before users."""
        return ordered(self.outputs)


def ordered(roots: Iterable[Node]) -> list[Node]:
    """Depth-first post-order from `roots`, each node once."""
    seen: set[Node] = set()
    order: list[Node] = []

    def visit(node: Node) -> None:
        stack: list[tuple[Node, Iterator[Node]]] = [(node, iter(node.args))]
        seen.add(node)
        while stack:
            current, pending = stack[-1]
            for argument in pending:
                if argument not in seen:
                    seen.add(argument)
                    stack.append((argument, iter(argument.args)))
                    break
            else:
                order.append(current)
                stack.pop()

    for root in roots:
        if root not in seen:
            visit(root)
    return order


def users(nodes: Iterable[Node]) -> Mapping[Node, list[Node]]:
    """Who reads each node, among `nodes`."""
    table: dict[Node, list[Node]] = {}
    for node in nodes:
        for argument in node.args:
            table.setdefault(argument, []).append(node)
    return table


def broadcast(*shapes: Shape) -> Shape:
    """PyTorch's broadcasting; ValueError where the shapes don't fit."""
    rank = max((len(s) for s in shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for position, size in enumerate(shape, start=rank - len(shape)):
            if size != 1 and result[position] not in (1, size):
                raise ValueError(f"shapes do not broadcast: {shapes}")
            result[position] = size if size != 1 else result[position]
    return tuple(result)


@dataclass
class Builder:
    """Makes nodes; the one place where result shapes and dtypes of primitives are decided."""

    _made: dict[tuple[object, ...], Node] = field(default_factory=dict)

    def add(self, node: Node) -> Node:
        """`node`, or the equal one made before: nothing is computed twice (random calls are)."""
        key = (
            node.kind, node.shape, node.dtype, node.args, node.op, node.name, str(node.value),
            node.dims, node.call,
        )  # fmt: skip
        if node.random:
            return node
        return self._made.setdefault(key, node)

    def const(self, value: float, dtype: str = "float32") -> Node:
        """A number."""
        return self.add(Node(Kind.CONST, (), dtype, value=float(value)))

    def full(self, shape: Shape, value: float, dtype: str = "float32") -> Node:
        """A number that fills a shape."""
        return self.add(Node(Kind.CONST, shape, dtype, value=float(value)))

    def leaf(self, kind: Kind, name: str, shape: Shape, dtype: str) -> Node:
        """An argument of forward, or a parameter or buffer."""
        return self.add(Node(kind, shape, dtype, name=name))

    def iota(self, rank: int, dim: int, size: int) -> Node:
        """Indices 0 .. size-1 along `dim` of a space with `rank` dimensions."""
        shape = tuple(size if d == dim else 1 for d in range(rank))
        return self.add(Node(Kind.IOTA, shape, "int64", dims=(dim,)))

    def pointwise(self, op: str, *args: Node, dtype: str | None = None) -> Node:
        """`op` over broadcast operands. dtype: float32 unless told otherwise."""
        shape = broadcast(*(a.shape for a in args))
        return self.add(Node(Kind.POINTWISE, shape, dtype or "float32", args, op))

    def reduce(self, op: str, value: Node, dims: Iterable[int]) -> Node:
        """Reduce over `dims`, kept with size 1. argmax and argmin give int64."""
        wanted = tuple(sorted(d % len(value.shape) for d in dims))
        shape = tuple(1 if d in wanted else n for d, n in enumerate(value.shape))
        dtype = "int64" if op.startswith("arg") else "float32"
        return self.add(Node(Kind.REDUCE, shape, dtype, (value,), op, dims=wanted))

    def view(self, value: Node, shape: Shape) -> Node:
        """The same elements with another shape; ValueError where the counts differ."""
        if prod(shape) != value.numel:
            raise ValueError(f"cannot view {value.shape} as {shape}")
        if shape == value.shape:
            return value
        if value.kind is Kind.VIEW:
            return self.view(value.args[0], shape)
        return self.add(Node(Kind.VIEW, shape, value.dtype, (value,)))

    def library(
        self,
        call: str,
        args: Iterable[Node],
        shape: Shape,
        dtype: str = "float32",
        random: bool = False,
    ) -> Node:
        """A call that stays in PyTorch; its result may be strided."""
        return self.add(
            Node(
                Kind.LIBRARY,
                shape,
                dtype,
                tuple(args),
                call=call,
                random=random,
                contiguous=False,
            )
        )
