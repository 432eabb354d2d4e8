"""Which values of a row are worth keeping from one pass to the next."""

from __future__ import annotations

from dataclasses import dataclass, field

from agent.tuner.planning.expression import COSTLY
from agent.tuner.planning.fused import Fused
from agent.tuner.tracing.graph import Node


@dataclass
class Staging:
    """Buffers of a row's length."""

    buffers: dict[Node, int] = field(default_factory=dict)
    """Value -> number of its buffer."""
    filled: dict[int, list[Node]] = field(default_factory=dict)
    """Pass (1, 2, ...) -> the values that it leaves in their buffers."""


def plan_staging(kernel: Fused) -> Staging:
    """Costly full values that a later pass needs again, each from the pass that first has it."""
    staging = Staging()
    body = set(kernel.body) & kernel.full
    passes = [
        [n.args[0] for n in kernel.reductions if kernel.level[n] == level]
        for level in range(1, kernel.passes + 1)
    ]
    passes.append([o.node for o in kernel.outputs if o.full])
    computed: dict[Node, int] = {}
    for level, wanted in enumerate(passes, start=1):
        stack, seen = list(wanted), set[Node]()
        while stack:
            node = stack.pop()
            if node in seen or node not in body:
                continue
            seen.add(node)
            if node in computed and node.dtype == "float32" and _costly(node, body):
                if node not in staging.buffers:
                    staging.buffers[node] = len(staging.buffers)
                    staging.filled.setdefault(computed[node], []).append(node)
                continue
            stack.extend(node.args)
        for node in seen:
            computed.setdefault(node, level)
    return staging


def _costly(node: Node, body: set[Node]) -> bool:
    return node.op in COSTLY or any(_costly(a, body) for a in node.args if a in body)
