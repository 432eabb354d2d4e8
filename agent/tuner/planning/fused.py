"""One fused kernel, before anybody has decided how to run it: what the emitters write out.

A kernel walks *outer* dimensions (independent, to be spread over threads or blocks) and contiguous
rows of `width` elements. A value is *full* if it varies along a row, else it is one number per row.
Reductions depend on each other in levels; each level costs one pass over the row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from agent.tuner.tracing.graph import Kind, Node, Shape, aligned, ordered


@dataclass(frozen=True)
class Operand:
    """A tensor that the kernel reads; always contiguous when the kernel gets it."""

    node: Node
    outer: tuple[int, ...]
    """Stride in elements along each outer dimension, 0 where it is broadcast."""
    along: bool
    """Whether it varies along a row."""


@dataclass(frozen=True)
class Fused:
    name: str
    outer: Shape
    """Sizes after merging neighbours that every operand walks alike."""
    width: int
    """Elements of a row."""
    operands: tuple[Operand, ...]
    outputs: tuple[Node, ...]
    """Tensors that the kernel writes: contiguous, of their nodes' shapes."""
    body: tuple[Node, ...]
    """The POINTWISE and REDUCE nodes, operands before users."""
    full: frozenset[Node]
    """The values that vary along a row; the others are one number a row."""
    level: dict[Node, int]
    """How many passes over the row must have ended before a value is known."""

    @property
    def family(self) -> str:
        """Which schedules are for it: `rows` where it reduces, else `map`."""
        return "rows" if self.reductions else "map"

    @property
    def rows(self) -> int:
        return prod(self.outer)

    @property
    def reductions(self) -> tuple[Node, ...]:
        return tuple(n for n in self.body if n.kind is Kind.REDUCE)

    @property
    def passes(self) -> int:
        """Levels of reductions; one more pass follows if an output is full."""
        return max((self.level[n] for n in self.reductions), default=0)

    def operand(self, node: Node) -> int:
        return next(i for i, o in enumerate(self.operands) if o.node is node)

    @property
    def stored(self) -> list[tuple[int, Node]]:
        """The full outputs and their positions."""
        return [(i, n) for i, n in enumerate(self.outputs) if n in self.full]

    def found(self, level: int) -> list[Node]:
        return [n for n in self.reductions if self.level[n] == level]

    def row_values(self, level: int) -> list[Node]:
        """Values a row (not an element) that follow from reductions up to that level."""
        pointwise = (n for n in self.body if n.kind is Kind.POINTWISE and n not in self.full)
        return [n for n in pointwise if self.level[n] == level]


def fuse(name: str, body: Iterable[Node], outputs: Sequence[Node]) -> Fused | None:
    """Make one kernel of `body` (POINTWISE and REDUCE nodes); None where they don't fit."""
    inside = set(body)
    order = [n for n in ordered(outputs) if n in inside]
    leaves = dict.fromkeys(a for n in order for a in n.args if a not in inside)
    reads = [n for n in leaves if n.kind is not Kind.CONST]
    rank = max(len(n.shape) for n in (*order, *leaves))
    shapes = {n: aligned(n.shape, rank) for n in (*order, *leaves)}
    space = tuple(max(sizes) for sizes in zip(*shapes.values(), strict=True))
    reductions = [n for n in order if n.kind is Kind.REDUCE]
    reduced = _reduced(reductions[0], rank) if reductions else ()
    full = {n for n, shape in shapes.items() if not reduced or any(shape[d] > 1 for d in reduced)}
    row_value = tuple(1 if d in reduced else n for d, n in enumerate(space))
    groups = _merge(space, reduced, [shapes[n] for n in (*reads, *outputs)])
    fits = (
        bool(reads)
        and all(n in (1, space[d]) for shape in shapes.values() for d, n in enumerate(shape))
        and all(shapes[n] == (space if n in full else row_value) for n in outputs)
        # What is reduced is the row, all of it and nothing else, and there are several.
        and all(_reduced(n, rank) == reduced for n in reductions)
        and (not reductions or (groups[-1:] == [[*reduced]] and len(groups) > 1))
    )
    if not fits:
        return None
    return Fused(
        name=name,
        outer=tuple(prod(space[d] for d in g) for g in groups[:-1]),
        width=prod(space[d] for d in groups[-1]) if groups else 1,
        operands=tuple(_operand(n, shapes[n], groups) for n in reads),
        outputs=tuple(outputs),
        body=tuple(order),
        full=frozenset(full),
        level=_levels(order),
    )


def _reduced(node: Node, rank: int) -> tuple[int, ...]:
    """The dimensions of size > 1 that `node` reduces, counted in the space."""
    source = node.args[0].shape
    return tuple(d + rank - len(source) for d in node.dims if source[d] > 1)


def _merge(space: Shape, reduced: Sequence[int], shapes: Sequence[Shape]) -> list[list[int]]:
    """Merge neighbouring dimensions along which every operand is alike present.

    Dimensions of size 1 vanish. Reduced dimensions merge with each other only. The last group is
    the row.
    """
    groups: list[list[int]] = []
    patterns: list[tuple[bool, ...]] = []
    for d, size in enumerate(space):
        if size == 1:
            continue
        pattern = (d in reduced, *(s[d] > 1 for s in shapes))
        if patterns and patterns[-1] == pattern:
            groups[-1].append(d)
        else:
            groups.append([d])
            patterns.append(pattern)
    return groups


def _operand(node: Node, shape: Shape, groups: Sequence[Sequence[int]]) -> Operand:
    strides = tuple(prod(shape[g[-1] + 1 :]) if shape[g[-1]] > 1 else 0 for g in groups)
    return Operand(node, strides[:-1], any(strides[-1:]))


def _levels(order: Sequence[Node]) -> dict[Node, int]:
    level: dict[Node, int] = {}
    for node in order:
        below = max((level.get(a, 0) for a in node.args), default=0)
        level[node] = below + (node.kind is Kind.REDUCE)
    return level
