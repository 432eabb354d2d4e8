"""Cuts a graph into fused kernels, as large as they fit, and what stays with PyTorch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agent.tuner.planning.expression import CTYPES
from agent.tuner.planning.fused import Fused, Nest, Unfusable, fuse
from agent.tuner.tracing.graph import Graph, Kind, Node, users

Step = Fused | Node
"""A kernel, or one node that PyTorch carries out."""


@dataclass(frozen=True)
class Program:
    """A forward pass, cut: steps in an order in which they can be carried out."""

    graph: Graph
    steps: tuple[Step, ...]

    @property
    def kernels(self) -> tuple[Fused, ...]:
        """The fused steps."""
        return tuple(s for s in self.steps if isinstance(s, Fused))

    @property
    def family(self) -> str:
        """Which schedules are for it: those of its heaviest kernel that reduces, or of MAP."""
        reducing = [k for k in self.kernels if k.nest is not Nest.MAP]
        return max(reducing or self.kernels, key=lambda k: k.traffic).nest


def fusible(node: Node) -> bool:
    """Whether a kernel of ours can compute it."""
    known = all(a.dtype in CTYPES for a in (node, *node.args))
    return node.kind in (Kind.POINTWISE, Kind.REDUCE) and known


def partition(graph: Graph, most: int | None = None) -> Program:
    """Greedy: every node joins the kernels of its operands where the union still is one kernel.

    `most` tensors go in and out of a kernel; None: as many as there are.
    """
    nodes = graph.nodes()
    readers = dict(users(nodes))
    group: dict[Node, frozenset[Node]] = {}
    for node in nodes:
        if not fusible(node):
            continue
        best = frozenset([node])
        if not _fits(best, readers, graph.outputs, group, most):
            continue
        candidates = {group[a] for a in node.args if a in group}
        for union in _unions(node, candidates):
            if _fits(union, readers, graph.outputs, group, most):
                best = union
                break
        for member in best:
            group[member] = best
    _join_siblings(nodes, readers, graph.outputs, group, most)
    kernels = dict.fromkeys(group.values())
    return Program(graph, tuple(_in_order(nodes, kernels, group, readers, graph.outputs)))


def _join_siblings(
    nodes: Sequence[Node],
    readers: dict[Node, list[Node]],
    outputs: Sequence[Node],
    group: dict[Node, frozenset[Node]],
    most: int | None,
) -> None:
    """Join kernels that read the same tensor, so that it is read once."""
    for node in nodes:
        kernels = list(dict.fromkeys(group[r] for r in readers.get(node, ()) if r in group))
        if node.kind is Kind.CONST or node in group:
            continue
        for one in kernels:
            for other in kernels:
                first, second = group[next(iter(one))], group[next(iter(other))]
                union = first | second
                if first != second and _fits(union, readers, outputs, group, most):
                    group.update(dict.fromkeys(union, union))


def _unions(node: Node, groups: set[frozenset[Node]]) -> Iterable[frozenset[Node]]:
    """What `node` might join, best first: all of its operands' kernels, then single ones."""
    if groups:
        yield frozenset([node]).union(*groups)
    for one in sorted(groups, key=lambda g: -sum(n.numel for n in g)):
        yield one | {node}


def _fits(
    union: frozenset[Node],
    readers: dict[Node, list[Node]],
    outputs: Sequence[Node],
    group: dict[Node, frozenset[Node]],
    most: int | None,
) -> bool:
    if _loops_back(union, readers, group):
        return False
    try:
        kernel = fuse("", union, leaving(union, readers, outputs))
    except Unfusable:
        return False
    return most is None or len(kernel.operands) + len(kernel.outputs) <= most


def leaving(
    body: Iterable[Node], readers: dict[Node, list[Node]], outputs: Sequence[Node]
) -> list[Node]:
    """The nodes of `body` that somebody outside needs, in a stable order."""
    inside = set(body)
    return [
        n
        for n in readers.keys() | set(outputs)
        if n in inside and (n in outputs or any(r not in inside for r in readers.get(n, ())))
    ]


def _loops_back(
    union: frozenset[Node],
    readers: dict[Node, list[Node]],
    group: dict[Node, frozenset[Node]],
) -> bool:
    """Whether a path leaves the union and comes back, other kernels taken as one step each."""
    stack = [r for n in union for r in readers.get(n, ()) if r not in union]
    seen: set[Node] = set()
    while stack:
        node = stack.pop()
        if node in union:
            return True
        for member in group.get(node, (node,)):
            if member not in seen and member not in union:
                seen.add(member)
                stack.extend(readers.get(member, ()))
    return False


def _in_order(
    nodes: Sequence[Node],
    kernels: Iterable[frozenset[Node]],
    group: dict[Node, frozenset[Node]],
    readers: dict[Node, list[Node]],
    outputs: Sequence[Node],
) -> list[Step]:
    position = {n: i for i, n in enumerate(nodes)}
    pending: list[frozenset[Node]] = [
        *kernels,
        *(frozenset([n]) for n in nodes if n not in group and not n.is_leaf),
    ]
    pending.sort(key=lambda g: max(position[n] for n in g))
    made = {n for n in nodes if n.is_leaf}
    steps: list[Step] = []
    while pending:
        ready = next(g for g in pending if all(a in made or a in g for n in g for a in n.args))
        pending.remove(ready)
        made |= ready
        only = next(iter(ready))
        if only in group:
            wanted = sorted(leaving(ready, readers, outputs), key=position.__getitem__)
            name = f"fused_{sum(isinstance(s, Fused) for s in steps)}"
            steps.append(fuse(name, sorted(ready, key=position.__getitem__), wanted))
        else:
            steps.append(only)
    return steps
