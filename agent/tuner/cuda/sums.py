"""Running results of reductions in CUDA kernels."""

from __future__ import annotations

from collections.abc import Sequence

from agent.tuner.cpp.sums import START, combined
from agent.tuner.cuda.values import CudaValues
from agent.tuner.tracing.graph import Node

OPERATIONS = {"sum": "Sum", "prod": "Prod", "max": "Max", "min": "Min"}


def greatest(node: Node) -> str:
    """The template argument of an arg-reduction."""
    return "true" if node.op == "argmax" else "false"


class CudaSums:
    """The reductions of one pass: `c<n>` runs, `k<n>` is the place of an extreme.

    A thread adds up what it sees in the type that the schedule says; threads are joined by a tree
    in the same type, so a row's sum has the same bits in every run. `online` maps a maximum to the
    sum of exponentials about it that the same pass yields.
    """

    def __init__(
        self, writer: CudaValues, reductions: Sequence[Node], online: dict[Node, Node]
    ) -> None:
        self.writer = writer
        self.nodes = reductions
        self.online = {m: s for m, s in online.items() if m in reductions}
        self.double = writer.choice("acc") == "fp64"

    def kind(self, node: Node) -> str:
        """C type of the running result."""
        return "double" if node.op in OPERATIONS and self.wide(node) else "float"

    def wide(self, node: Node) -> bool:
        """Whether it runs in fp64."""
        return self.double and node.op in ("sum", "prod")

    def roots(self) -> list[Node]:
        """What has to be known of each element."""
        return [n.args[0] for n in self.nodes]

    def declarations(self) -> list[str]:
        """Before the pass."""
        lines = []
        for node in self.nodes:
            n = self.writer.number[node]
            lines.append(f"{self.kind(node)} c{n} = {START[node.op]};")
            if node.op.startswith("arg"):
                lines.append(f"int k{n} = {self.writer.kernel.row};")
            if node in self.online:
                lines.append(f"float c{self.writer.number[self.online[node]]} = 0.0f;")
        return lines

    def updates(self) -> list[str]:
        """For one element."""
        lines = []
        for node in self.nodes:
            n, value = self.writer.number[node], self.writer.name(node.args[0])
            if node in self.online:
                lines.append(f"online(c{n}, c{self.writer.number[self.online[node]]}, {value});")
            elif node.op.startswith("arg"):
                sign = ">" if node.op == "argmax" else "<"
                lines.append(f"if ({value} {sign} c{n}) {{ c{n} = {value}; k{n} = i + j; }}")
            else:
                lines.append(f"c{n} = {combined(node.op, f'c{n}', value)};")
        return lines

    def join(self, team: str) -> list[str]:
        """After the pass, every thread of the team: the results by their names."""
        lines = []
        for node in self.nodes:
            n = self.writer.number[node]
            if node in self.online:
                s = self.writer.number[self.online[node]]
                lines.append(f"team_online<{team}>(c{n}, c{s});")
                lines.append(f"const float v{n} = c{n}, v{s} = c{s};")
            elif node.op.startswith("arg"):
                lines.append(f"team_place<{team}, {greatest(node)}>(c{n}, k{n});")
                row = self.writer.kernel.row
                lines.append(f"const int64_t v{n} = k{n} < {row} ? k{n} : 0;")
            else:
                call = f"team_reduce<{team}, {OPERATIONS[node.op]}>(c{n})"
                lines.append(f"const float v{n} = (float){call};")
        return lines
