"""Which values of a row are worth keeping from one pass to the next."""

from __future__ import annotations

from collections.abc import Callable

from agent.tuner.planning.fused import Fused
from agent.tuner.tracing.graph import Node


def plan_staging(kernel: Fused, worth: Callable[[Node], bool]) -> dict[int, list[Node]]:
    """Full values that are `worth` it and that a later pass needs again: pass (1, ...) -> values.

    Each is staged by the first pass that has it.
    """
    passes = [[n.args[0] for n in kernel.found(p)] for p in range(1, kernel.passes + 1)]
    plan: dict[int, list[Node]] = {}
    known: dict[Node, int] = {}
    for level, wanted in enumerate([*passes, [n for _, n in kernel.stored]], start=1):
        stack, seen = list(wanted), set[Node]()
        while stack:
            node = stack.pop()
            if node in seen or node not in kernel.full:
                continue
            seen.add(node)
            if node in known and node.dtype == "float32" and worth(node):
                kept = plan.setdefault(known[node], [])
                kept += [node] if node not in kept else []
            elif node in kernel.body:
                stack.extend(node.args)
        for node in seen:
            known.setdefault(node, level)
    return plan
