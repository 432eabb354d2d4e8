"""Cuts a graph into fused kernels, as large as they fit, and what stays with PyTorch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

from agent.tuner.planning.fused import Fused, fuse
from agent.tuner.tracing.graph import CannotTrace, Graph, Kind, Node

Step = Fused | Node
"""A kernel, or one node that PyTorch carries out."""


@dataclass(frozen=True)
class Program:
    """A forward pass, cut: steps in an order in which they can be carried out."""

    graph: Graph
    steps: tuple[Step, ...]

    @property
    def kernels(self) -> tuple[Fused, ...]:
        return tuple(s for s in self.steps if isinstance(s, Fused))

    @property
    def family(self) -> str:
        """Which schedules are for it: those for reductions if a kernel has any."""
        return max(k.family for k in self.kernels)


def partition(graph: Graph) -> Program:
    """Every node joins the kernels of its operands where the union still is one kernel.

    CannotTrace where numbers are computed that no tensor goes into.
    """
    return _Partition(graph).program()


class _Partition:
    """Greedy; `group` maps each node of a kernel to all of them."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes = graph.nodes()
        self.readers: dict[Node, list[Node]] = {}
        for node in self.nodes:
            for argument in node.args:
                self.readers.setdefault(argument, []).append(node)
        self.group: dict[Node, frozenset[Node]] = {}

    def program(self) -> Program:
        for node in self.nodes:
            alone = frozenset([node])
            if node.kind in (Kind.POINTWISE, Kind.REDUCE) and self._fits(alone):
                best = alone
                for argument in node.args:
                    union = best | self.group.get(argument, alone)
                    best = union if self._fits(union) else best
                self.group.update(dict.fromkeys(best, best))
            elif node.kind is Kind.POINTWISE:
                raise CannotTrace("arithmetic without a tensor")
        self._join_siblings()
        return Program(self.graph, tuple(self._in_order()))

    def _join_siblings(self) -> None:
        """Join kernels that read the same tensor, so that it is read once."""
        for node in self.nodes:
            kernels = [r for r in self.readers.get(node, ()) if r in self.group]
            if node.kind is Kind.CONST or node in self.group:
                continue
            for one, other in product(kernels, kernels):
                union = self.group[one] | self.group[other]
                if self.group[one] != self.group[other] and self._fits(union):
                    self.group.update(dict.fromkeys(union, union))

    def _fits(self, union: frozenset[Node]) -> bool:
        return not self._loops_back(union) and self._fused("", union) is not None

    def _fused(self, name: str, body: frozenset[Node]) -> Fused | None:
        """`body` as a kernel that writes the nodes which somebody outside needs."""
        inside = [n for n in self.nodes if n in body]
        used = {a for n in self.nodes if n not in body for a in n.args} | {*self.graph.outputs}
        return fuse(name, inside, [n for n in inside if n in used])

    def _loops_back(self, union: frozenset[Node]) -> bool:
        """Whether a path leaves the union and comes back, other kernels taken as one step each."""
        stack = [r for n in union for r in self.readers.get(n, ()) if r not in union]
        seen: set[Node] = set()
        while stack:
            node = stack.pop()
            if node in union:
                return True
            for member in self.group.get(node, (node,)):
                if member not in seen and member not in union:
                    seen.add(member)
                    stack.extend(self.readers.get(member, ()))
        return False

    def _in_order(self) -> Iterable[Step]:
        inner = [n for n in self.nodes if not n.is_leaf]
        # By their last nodes.
        pending = [*dict.fromkeys(self.group.get(n, frozenset([n])) for n in reversed(inner))][::-1]
        made = {n for n in self.nodes if n.is_leaf}
        kernels = 0
        while pending:
            ready = next(g for g in pending if all(a in made or a in g for n in g for a in n.args))
            pending.remove(ready)
            made |= ready
            kernel = self._fused(f"fused_{kernels}", ready) if ready <= set(self.group) else None
            kernels += kernel is not None
            yield from [kernel] if kernel else ready
