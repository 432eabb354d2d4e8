"""Algebra that changes rounding, done only where the schedule asks for it."""

from __future__ import annotations

from agent.tuner.tracing.graph import Builder, Graph, Kind, Node
from agent.tuner.tracing.normalise import remake


def fewest_passes(graph: Graph, b: Builder) -> Graph:
    """The squares about a mean from the sum of squares: one pass less, and cancellation.

    sum((x - m)^2) = sum(x^2) - m sum(x), where m is the mean of x over the same dimensions.
    """
    new: dict[Node, Node] = {}
    for node in graph.nodes():
        args = tuple(new[a] for a in node.args)
        new[node] = _about_mean(b, node, args) or remake(b, node, args)
    return Graph(graph.arguments, tuple(new[o] for o in graph.outputs), graph.returns)


def _about_mean(b: Builder, node: Node, args: tuple[Node, ...]) -> Node | None:
    if node.kind is not Kind.REDUCE or node.op != "sum" or args[0].op != "square":
        return None
    difference = args[0].args[0]
    if difference.op != "sub":
        return None
    x, mean = difference.args
    if mean.op != "mul" or mean.args[1].kind is not Kind.CONST:
        return None
    total = mean.args[0]
    elements = x.numel // max(node.numel, 1)
    if total.kind is not Kind.REDUCE or total.op != "sum" or total.args[0] is not x:
        return None
    if total.dims != node.dims or abs(mean.args[1].value * elements - 1.0) > 1e-9:
        return None
    squares = b.reduce("sum", b.pointwise("square", x), node.dims)
    rest = b.pointwise("sub", squares, b.pointwise("mul", mean, total))
    return b.pointwise("max", rest, b.const(0.0))
