"""Running results of reductions in C++ kernels."""

from __future__ import annotations

from collections.abc import Sequence

from agent.tuner.cpp.values import CppValues
from agent.tuner.planning.fused import Nest
from agent.tuner.tracing.graph import Node

BLOCK = 256
"""Elements that one float accumulator sees before it is added to a double."""

START = {
    "sum": "0",
    "prod": "1",
    "max": "-INFINITY",
    "min": "INFINITY",
    "argmax": "-INFINITY",
    "argmin": "INFINITY",
}
_CLAUSES = {"sum": "+", "prod": "*", "max": "max", "min": "min", "argmax": "max", "argmin": "min"}


def combined(op: str, total: str, value: str) -> str:
    """The C expression that takes one more value into a running result."""
    if op in ("sum", "prod"):
        return f"{total} {_CLAUSES[op]} {value}"
    sign = ">" if op.endswith("max") else "<"
    return f"{value} {sign} {total} ? {value} : {total}"


class Accumulators:
    """The running results of the reductions of one pass along contiguous elements.

    `fp32`: one float for the whole stretch. `fp64`: one double. `blocked`: a float for each block
    of BLOCK elements, added to a double. Arg-reductions always go by blocks: the extreme of a block
    first, then its place if it is a new extreme.
    """

    def __init__(self, writer: CppValues, reductions: Sequence[Node]) -> None:
        self.writer = writer
        self.total = writer.kernel.nest is Nest.TOTAL
        self.acc = writer.schedule["acc"]
        self.items = [(writer.number[n], n, writer.name(n.args[0])) for n in reductions]

    def _wide(self, node: Node) -> bool:
        return node.op in ("sum", "prod") and self.acc != "fp32"

    def _in_blocks(self, node: Node) -> bool:
        return node.op.startswith("arg") or (self._wide(node) and self.acc == "blocked")

    @property
    def blocked(self) -> bool:
        """Whether the pass has to go by blocks."""
        return any(self._in_blocks(node) for _, node, _ in self.items)

    def declarations(self) -> list[str]:
        """Before the pass."""
        lines = []
        for n, node, _ in self.items:
            lines.append(f"{'double' if self._wide(node) else 'float'} c{n} = {START[node.op]};")
            if node.op.startswith("arg"):
                lines.append(f"int64_t v{n} = 0;")
        return lines

    def block_declarations(self) -> list[str]:
        """Before a block."""
        lines = []
        for n, node, _ in self.items:
            if self._in_blocks(node):
                lines.append(f"float b{n} = {START[node.op]};")
            if node.op.startswith("arg"):
                lines.append(f"float k{n}[{BLOCK}];")
        return lines

    def _running(self, n: int, node: Node) -> str:
        return f"b{n}" if self._in_blocks(node) else f"c{n}"

    def clauses(self) -> list[str]:
        """Of `omp simd`."""
        return [
            f"reduction({_CLAUSES[node.op]}:{self._running(n, node)})" for n, node, _ in self.items
        ]

    def updates(self) -> list[str]:
        """For one element."""
        lines = []
        for n, node, value in self.items:
            if node.op.startswith("arg"):
                lines.append(f"k{n}[i - block] = {value};")
            running = self._running(n, node)
            lines.append(f"{running} = {combined(node.op.removeprefix('arg'), running, value)};")
        return lines

    def block_ends(self) -> list[str]:
        """After a block."""
        lines = []
        for n, node, _ in self.items:
            if node.op.startswith("arg"):
                sign = ">" if node.op == "argmax" else "<"
                lines += [
                    f"if (b{n} {sign} c{n}) {{",
                    f"c{n} = b{n};",
                    f"for (v{n} = block; v{n} + 1 < stop && k{n}[v{n} - block] != b{n}; ++v{n}) {{",
                    "}",
                    "}",
                ]
            elif self._in_blocks(node):
                lines.append(f"c{n} = {combined(node.op, f'c{n}', f'b{n}')};")
        return lines

    def results(self) -> list[str]:
        """After the pass: the value by its name; in TOTAL, this task's part of it."""
        lines = []
        for n, node, _ in self.items:
            if self.total:
                lines.append(f"const double v{n}_ = c{n};")
            elif not node.op.startswith("arg"):
                lines.append(f"const float v{n} = (float)c{n};")
        return lines

    def combine(self, blocks: int) -> list[str]:
        """TOTAL: the tasks' parts in order, so that every run gives the same sum."""
        lines = []
        for n, node, _ in self.items:
            kind = "double" if self._wide(node) else "float"
            lines += [
                f"{kind} total{n} = {START[node.op]};",
                f"for (int64_t t = 0; t < {blocks}; ++t) {{",
                f"const {kind} part = part{n}[t];",
                f"total{n} = {combined(node.op, f'total{n}', 'part')};",
                "}",
                f"const float v{n} = (float)total{n};",
            ]
        return lines
