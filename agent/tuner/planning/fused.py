"""One fused kernel, before anybody has decided how to run it: what the emitters write out.

A kernel walks a space of up to three groups of dimensions, from slow to fast: *outer* (independent,
to be spread over threads or blocks), *reduced* (a row), *inner* (contiguous dimensions after the
reduced ones). A value is *full* if it varies along a reduced dimension, else it is one number per
row. Reductions depend on each other in levels; each level costs one pass over the row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import prod

from agent.tuner.tracing.graph import Kind, Node, Shape, ordered


class Unfusable(Exception):  # noqa: N818 (a verdict on a set of nodes, not an error of ours)
    """These nodes don't fit into one kernel."""


class Nest(StrEnum):
    """Which loops a kernel needs; also the name of its family of schedules."""

    MAP = "map"
    """No reduction. `reduced` is empty, `inner` the contiguous run, `outer` the rest."""
    ROWS = "rows"
    """Reductions over trailing dimensions: rows are contiguous, `inner` is empty."""
    COLUMNS = "columns"
    """Reductions with dimensions after them: `inner` is not empty."""
    TOTAL = "total"
    """Reductions over everything: `outer` and `inner` are empty, there is one row."""


@dataclass(frozen=True)
class Operand:
    """A tensor that the kernel reads; always contiguous when the kernel gets it."""

    node: Node
    outer: tuple[int, ...]
    """Stride in elements along each outer dimension, 0 where it is broadcast."""
    reduced: tuple[int, ...]
    inner: tuple[int, ...]


@dataclass(frozen=True)
class Output:
    """A tensor that the kernel writes: contiguous, of `node.shape`."""

    node: Node
    full: bool
    """True: one element per element of the space; False: one per row (and inner index)."""


@dataclass(frozen=True)
class Fused:
    """A kernel."""

    name: str
    nest: Nest
    outer: Shape
    """Sizes after merging neighbours that every operand walks alike."""
    reduced: Shape
    """Likewise: one size, or none (MAP)."""
    inner: Shape
    """Likewise: one size, or none."""
    operands: tuple[Operand, ...]
    outputs: tuple[Output, ...]
    body: tuple[Node, ...]
    """The POINTWISE and REDUCE nodes, operands before users."""
    full: frozenset[Node]
    """The values that vary along a reduced dimension (MAP: every body node)."""
    level: dict[Node, int]
    """How many passes over the row must have ended before a value is known."""
    counters: dict[Node, tuple[str, int]]
    """Where each IOTA runs: along `o`, `r` or `i`, and which of that group's sizes."""

    @property
    def rows(self) -> int:
        """Number of independent rows (without the inner dimensions)."""
        return prod(self.outer)

    @property
    def row(self) -> int:
        """Elements of a row."""
        return prod(self.reduced)

    @property
    def width(self) -> int:
        """Elements of the inner dimension; of MAP, those that are walked contiguously."""
        return prod(self.inner)

    @property
    def reductions(self) -> tuple[Node, ...]:
        """The REDUCE nodes of the body."""
        return tuple(n for n in self.body if n.kind is Kind.REDUCE)

    @property
    def passes(self) -> int:
        """Levels of reductions; one more pass follows if an output is full."""
        return max((self.level[n] for n in self.reductions), default=0)

    @property
    def traffic(self) -> int:
        """Elements read and written, each once."""
        read = sum(o.node.numel for o in self.operands)
        return read + sum(o.node.numel for o in self.outputs)

    def operand(self, node: Node) -> int:
        """Position of `node` among the operands."""
        return next(i for i, o in enumerate(self.operands) if o.node is node)


def fuse(name: str, body: Iterable[Node], outputs: Sequence[Node]) -> Fused:
    """Make one kernel of `body` (POINTWISE and REDUCE nodes); Unfusable where they don't fit."""
    inside = set(body)
    order = [n for n in ordered(outputs) if n in inside]
    space, reduced = _space(order)
    rank = len(space)
    leaves = _leaves(order, inside)
    full = {n for n in [*order, *leaves] if not reduced or _varies(n, reduced, rank)}
    if any(_full_reduce(n, rank) != reduced for n in order if n.kind is Kind.REDUCE):
        raise Unfusable("reductions over different dimensions")
    if not reduced and any(n.kind is Kind.REDUCE for n in order):
        raise Unfusable("reductions over a single element")
    tags = _tags(space, reduced)
    reads = [n for n in leaves if n.kind is not Kind.CONST and n.kind is not Kind.IOTA]
    counters = [n for n in leaves if n.kind is Kind.IOTA]
    walked = [_aligned(n.shape, rank) for n in [*reads, *counters, *outputs]]
    # Rows of a slice are apart: they don't merge into one long run.
    slices = [n for n in reads if n.op == "narrow" and n.dims[0] == len(n.shape) - 1]
    groups = _merge(space, tags, walked, rank - 1 if slices else rank)
    for node in outputs:
        expected = space if node in full else _collapsed(space, reduced)
        if _aligned(node.shape, rank) != expected:
            raise Unfusable(f"{node} covers only a part of the space")
    sizes = {tag: tuple(prod(space[d] for d in g) for t, g in groups if t == tag) for tag in "ori"}
    if len(sizes["r"]) > 1 or len(sizes["i"]) > 1:
        raise Unfusable("an operand that is broadcast along a part of the row")
    if not any(n.op != "scalar" for n in reads):
        raise Unfusable("nothing to read")
    nest = _nest(reduced, sizes)
    if nest is Nest.TOTAL and any(n.op.startswith("arg") for n in order):
        raise Unfusable("the place of an extreme in the whole tensor")
    operands = tuple(_operand(n, groups, rank) for n in reads)
    return Fused(
        name=name,
        nest=nest,
        outer=sizes["o"],
        reduced=sizes["r"],
        inner=sizes["i"],
        operands=operands,
        outputs=tuple(Output(n, n in full) for n in outputs),
        body=tuple(order),
        full=frozenset(full),
        level=_levels(order),
        counters={n: _counter(n, groups, rank) for n in counters},
    )


def _space(order: Sequence[Node]) -> tuple[Shape, tuple[int, ...]]:
    """The whole space that the body walks and the dimensions of it that are reduced."""
    shapes = [n.shape for n in order] + [a.shape for n in order for a in n.args]
    rank = max(len(s) for s in shapes)
    space = tuple(max(_aligned(s, rank)[d] for s in shapes) for d in range(rank))
    reduced: set[int] = set()
    for node in order:
        for shape in (node.shape, *(a.shape for a in node.args)):
            if any(n not in (1, space[d]) for d, n in enumerate(_aligned(shape, rank))):
                raise Unfusable("shapes do not broadcast to one space")
        if node.kind is Kind.REDUCE:
            reduced.update(_full_reduce(node, rank))
    return space, tuple(sorted(d for d in reduced if space[d] > 1))


def _full_reduce(node: Node, rank: int) -> tuple[int, ...]:
    """The dimensions of size > 1 that `node` reduces, counted in the space."""
    source = node.args[0].shape
    return tuple(d + rank - len(source) for d in node.dims if source[d] > 1)


def _aligned(shape: Shape, rank: int) -> Shape:
    return (1,) * (rank - len(shape)) + shape


def _collapsed(space: Shape, reduced: Sequence[int]) -> Shape:
    return tuple(1 if d in reduced else n for d, n in enumerate(space))


def _varies(node: Node, reduced: Sequence[int], rank: int) -> bool:
    return any(_aligned(node.shape, rank)[d] > 1 for d in reduced)


def _leaves(order: Sequence[Node], inside: set[Node]) -> list[Node]:
    leaves: dict[Node, None] = {}
    for node in order:
        for argument in node.args:
            if argument not in inside:
                leaves[argument] = None
    return list(leaves)


def _tags(space: Shape, reduced: Sequence[int]) -> str:
    """`o`, `r` or `i` for each dimension; Unfusable if the reduced ones are not neighbours."""
    if not reduced:
        return "i" * len(space)
    first, last = reduced[0], reduced[-1]
    if any(space[d] > 1 and d not in reduced for d in range(first, last)):
        raise Unfusable("reduced dimensions are not neighbours")
    return "".join("o" if d < first else "r" if d <= last else "i" for d in range(len(space)))


def _merge(
    space: Shape, tags: str, shapes: Sequence[Shape], cut: int
) -> list[tuple[str, list[int]]]:
    """Merge neighbouring dimensions of one tag along which every operand is alike present.

    Dimension `cut` never merges with the one before it. Dimensions of size 1 vanish. Without
    reductions all but the last group become outer ones.
    """
    groups: list[tuple[str, list[int]]] = []
    patterns: list[tuple[bool, ...]] = []
    for d, size in enumerate(space):
        if size == 1:
            continue
        pattern = tuple(s[d] > 1 for s in shapes)
        # Outputs are among `shapes`: a reduced dimension never merges with one that stays.
        alike = bool(groups) and groups[-1][0] == tags[d] and patterns[-1] == pattern
        if alike and d != cut:
            groups[-1][1].append(d)
        else:
            groups.append((tags[d], [d]))
            patterns.append(pattern)
    if "r" not in tags and groups:
        groups = [("o", g) for _, g in groups[:-1]] + [("i", groups[-1][1])]
    return groups


def _counter(node: Node, groups: Sequence[tuple[str, list[int]]], rank: int) -> tuple[str, int]:
    """Where an IOTA's dimension went; it is alone in its group: nothing looks like it."""
    dim = node.dims[0] + rank - len(node.shape)
    for position, (tag, dims) in enumerate(groups):
        if dims == [dim]:
            return tag, sum(1 for t, _ in groups[:position] if t == tag)
    raise Unfusable("an index along a dimension of size 1")


def _operand(node: Node, groups: Sequence[tuple[str, list[int]]], rank: int) -> Operand:
    shape = _aligned(node.shape, rank)
    strides: dict[str, list[int]] = {"o": [], "r": [], "i": []}
    for tag, dims in groups:
        last = dims[-1]
        strides[tag].append(prod(shape[last + 1 :]) if shape[last] > 1 else 0)
    return Operand(node, tuple(strides["o"]), tuple(strides["r"]), tuple(strides["i"]))


def _nest(reduced: Sequence[int], sizes: dict[str, Shape]) -> Nest:
    if not reduced:
        return Nest.MAP
    if sizes["i"]:
        return Nest.COLUMNS
    return Nest.ROWS if sizes["o"] else Nest.TOTAL


def _levels(order: Sequence[Node]) -> dict[Node, int]:
    level: dict[Node, int] = {}
    for node in order:
        below = max((level.get(a, 0) for a in node.args), default=0)
        level[node] = below + (node.kind is Kind.REDUCE)
    return level
