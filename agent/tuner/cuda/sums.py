"""Running results of reductions in CUDA kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent.tuner.kernel_text import KernelText, Sums
from agent.tuner.tracing.graph import Node

OPERATIONS = {"sum": "Sum", "max": "Max", "min": "Min"}


class CudaSums(Sums):
    """Of a team of threads.

    A thread adds up what it sees in the type that the schedule says; threads are joined by a tree
    in the same type, so a row's sum has the same bits in every run. `online` maps a maximum to the
    sum of exponentials about it that the same pass yields.
    """

    def __init__(
        self, writer: KernelText, reductions: Sequence[Node], online: Mapping[Node, Node]
    ) -> None:
        super().__init__(writer, reductions)
        self.online = {writer.number[m]: writer.number[s] for m, s in online.items()}

    def declarations(self) -> list[str]:
        """Before the pass."""
        pairs = [self.online[n] for n, _, _ in self.items if n in self.online]
        return [*super().declarations(), *(f"float c{s} = 0.0f;" for s in pairs)]

    def updates(self) -> list[str]:
        """For one element."""
        return [
            f"online(c{n}, c{self.online[n]}, {value});" if n in self.online else line
            for (n, _, value), line in zip(self.items, super().updates(), strict=True)
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
