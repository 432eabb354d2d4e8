"""Running results of reductions in C++ kernels."""

from __future__ import annotations

from collections.abc import Sequence

from agent.tuner.kernel_text import START, KernelText, Sums, combined
from agent.tuner.planning.fused import Nest
from agent.tuner.tracing.graph import Node

BLOCK = 256
"""Elements that one float accumulator sees before it is added to a double."""


class Accumulators(Sums):
    """Along contiguous elements.

    `fp32`: one float for the whole stretch. `fp64`: one double. `blocked`: a float for each block
    of BLOCK elements, added to a double.
    """

    def __init__(self, writer: KernelText, reductions: Sequence[Node]) -> None:
        super().__init__(writer, reductions)
        self.total = writer.kernel.nest is Nest.TOTAL
        self.blocked = any(self._in_blocks(op) for _, op, _ in self.items)
        """Whether the pass has to go by blocks."""

    def _in_blocks(self, op: str) -> bool:
        return op == "sum" and self.acc == "blocked"

    def running(self, n: int, op: str) -> str:
        """A block's result where there are blocks."""
        return f"b{n}" if self._in_blocks(op) else f"c{n}"

    def block_declarations(self) -> list[str]:
        """Before a block."""
        return [f"float b{n} = {START[op]};" for n, op, _ in self.items if self._in_blocks(op)]

    def clauses(self) -> list[str]:
        """Of `omp simd`."""
        signs = {"sum": "+", "max": "max", "min": "min"}
        return [f"reduction({signs[op]}:{self.running(n, op)})" for n, op, _ in self.items]

    def block_ends(self) -> list[str]:
        """After a block."""
        blocked = [(n, op) for n, op, _ in self.items if self._in_blocks(op)]
        return [f"c{n} = {combined(op, f'c{n}', f'b{n}')};" for n, op in blocked]

    def results(self) -> list[str]:
        """After the pass: the value by its name; in TOTAL, this task's part of it."""
        if self.total:
            return [f"const double v{n}_ = c{n};" for n, _, _ in self.items]
        return [f"const float v{n} = (float)c{n};" for n, _, _ in self.items]

    def combine(self, blocks: int) -> list[str]:
        """TOTAL: the tasks' parts in order, so that every run gives the same sum."""
        lines = []
        for n, op, _ in self.items:
            kind = self.kind(op)
            lines += [
                f"{kind} total{n} = {START[op]};",
                f"for (int64_t t = 0; t < {blocks}; ++t) {{",
                f"const {kind} part = part{n}[t];",
                f"total{n} = {combined(op, f'total{n}', 'part')};",
                "}",
                f"const float v{n} = (float)total{n};",
            ]
        return lines
