"""Which values of a row are worth keeping from one pass to the next."""

from __future__ import annotations

from collections.abc import Set

from agent.tuner.planning.expression import COSTLY
from agent.tuner.planning.fused import Fused
from agent.tuner.tracing.graph import Node


def plan_staging(kernel: Fused) -> tuple[dict[Node, int], dict[int, list[Node]]]:
    """Costly full values that a later pass needs again, each from the pass that first has it.

    Value -> number of its buffer of a row's length, and pass (1, 2, ...) -> what it leaves there.
    """
    buffers: dict[Node, int] = {}
    filled: dict[int, list[Node]] = {}
    body = set(kernel.body) & kernel.full
    passes = [[n.args[0] for n in kernel.found(p)] for p in range(1, kernel.passes + 1)]
    passes.append([n for _, n in kernel.stored])
    computed: dict[Node, int] = {}
    for level, wanted in enumerate(passes, start=1):
        stack, seen = list(wanted), set[Node]()
        while stack:
            node = stack.pop()
            if node in seen or node not in body:
                continue
            seen.add(node)
            if node in computed and node.dtype == "float32" and _costly(node, body):
                if node not in buffers:
                    buffers[node] = len(buffers)
                    filled.setdefault(computed[node], []).append(node)
                continue
            stack.extend(node.args)
        for node in seen:
            computed.setdefault(node, level)
    return buffers, filled


def _costly(node: Node, body: Set[Node]) -> bool:
    return node.op in COSTLY or any(_costly(a, body) for a in node.args if a in body)
