"""Running results of reductions in CUDA kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent.tuner.cuda.values import CudaValues
from agent.tuner.kernel_text import START, combined
from agent.tuner.tracing.graph import Node

OPERATIONS = {"sum": "Sum", "max": "Max", "min": "Min"}


class CudaSums:
    """The reductions of one pass; `c<n>` runs.

    A thread adds up what it sees in the type that the schedule says; threads are joined by a tree
    in the same type, so a row's sum has the same bits in every run. `online` maps a maximum to the
    sum of exponentials about it that the same pass yields.
    """

    def __init__(
        self, writer: CudaValues, reductions: Sequence[Node], online: Mapping[Node, Node]
    ) -> None:
        self.writer = writer
        self.nodes = reductions
        self.online = {writer.number[m]: writer.number[s] for m, s in online.items()}
        self.roots = [n.args[0] for n in reductions]
        """What has to be known of each element."""
        self.items = [(writer.number[n], n.op, writer.name(n.args[0])) for n in reductions]

    def kind(self, op: str) -> str:
        """C type of the running result."""
        return "double" if op == "sum" and self.writer.choice("acc") == "fp64" else "float"

    def declarations(self) -> list[str]:
        """Before the pass."""
        lines = []
        for n, op, _ in self.items:
            lines.append(f"{self.kind(op)} c{n} = {START[op]};")
            if n in self.online:
                lines.append(f"float c{self.online[n]} = 0.0f;")
        return lines

    def updates(self) -> list[str]:
        """For one element."""
        return [
            f"online(c{n}, c{self.online[n]}, {value});"
            if n in self.online
            else f"c{n} = {combined(op, f'c{n}', value)};"
            for n, op, value in self.items
        ]

    def join(self) -> list[str]:
        """After the pass, every thread of the team: the results by their names."""
        lines = []
        for n, op, _ in self.items:
            if n in self.online:
                s = self.online[n]
                lines.append(f"team_online<TEAM>(c{n}, c{s});")
                lines.append(f"const float v{n} = c{n}, v{s} = c{s};")
            else:
                call = f"team_reduce<TEAM, {OPERATIONS[op]}>(c{n})"
                lines.append(f"const float v{n} = (float){call};")
        return lines
