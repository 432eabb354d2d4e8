"""Algebra that changes rounding, done only where the schedule asks for it."""

from __future__ import annotations

from agent.tuner.tracing.graph import Graph, Kind, Node, binary, reduce, remake, unary


def fewest_passes(graph: Graph) -> Graph:
    """The squares about a mean from the sum of squares: one pass less, and cancellation.

    sum((x - m)^2) = sum(x^2) - m sum(x), where m is the mean of x over the same dimensions.
    """
    return graph.rebuilt(lambda node, args: _about_mean(node, args) or remake(node, args))


def _about_mean(node: Node, args: tuple[Node, ...]) -> Node | None:
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
    return binary("max", reduce("sum", unary("square", x), node.dims) - mean * total, 0.0)
