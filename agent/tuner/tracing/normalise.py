"""Rewrites that make room for fusion: views out of the way, nothing computed changes.

A reduction that drops its dimension leaves a view behind, which would cut a kernel in two. It moves
after what follows it.
"""

from __future__ import annotations

from agent.tuner.tracing.graph import (
    Graph,
    Kind,
    Node,
    Shape,
    pointwise,
    reduce,
    remake,
    view,
)


def normalise(graph: Graph) -> Graph:
    """The same graph with its views moved."""
    return graph.rebuilt(remake).rebuilt(_sink)


def _unit(shape: Shape) -> Shape:
    return tuple(n for n in shape if n != 1)


def _sink(node: Node, args: tuple[Node, ...]) -> Node:
    if node.kind is Kind.POINTWISE:
        args = tuple(_unsqueezed(a, len(node.shape)) for a in args)
        for argument in args:
            if _squeezed(argument) and len(argument.shape) == len(node.shape):
                return _after(node, args, argument)
    if node.kind is Kind.REDUCE and _squeezed(args[0]):
        kept = _kept(args[0])
        dims = tuple(kept[d] for d in node.dims)
        return view(reduce(node.op, args[0].args[0], dims), node.shape)
    return remake(node, args)


def _squeezed(node: Node) -> bool:
    """A view that only drops dimensions of size 1 from something computed."""
    if node.kind is not Kind.VIEW:
        return False
    source = node.args[0]
    computed = source.kind in (Kind.POINTWISE, Kind.REDUCE)
    fewer = len(source.shape) > len(node.shape)
    return computed and fewer and _unit(source.shape) == _unit(node.shape)


def _unsqueezed(node: Node, rank: int) -> Node:
    """The source of a squeezing view where broadcasting to `rank` dimensions undoes the view."""
    if not _squeezed(node) or len(node.shape) == rank:
        return node
    source = node.args[0]
    spare = len(source.shape) - len(node.shape)
    same = source.shape == (1,) * spare + node.shape
    return source if same and len(source.shape) <= rank else node


def _kept(squeezing: Node) -> list[int]:
    """For each dimension of a squeezing view, the dimension of its source that it is."""
    source, kept, position = squeezing.args[0].shape, [], 0
    spare = len(source) - len(squeezing.shape)
    for size in squeezing.shape:
        while source[position] != size and spare:
            position += 1
            spare -= 1
        kept.append(position)
        position += 1
    return kept


def _after(node: Node, args: tuple[Node, ...], squeezing: Node) -> Node:
    """The operation on the view's source, then the view."""
    rank, kept = len(squeezing.args[0].shape), _kept(squeezing)

    def raised(shape: Shape) -> Shape:
        result = [1] * rank
        for size, d in zip(reversed(shape), reversed(kept), strict=False):
            result[d] = size
        return tuple(result)

    def inside(argument: Node) -> Node:
        whole = _squeezed(argument) and argument.args[0].shape == (1,) * rank
        if argument is squeezing or whole:
            return argument.args[0]
        return view(argument, raised(argument.shape)) if argument.shape else argument

    return view(pointwise(node.op, *map(inside, args), dtype=node.dtype), node.shape)
