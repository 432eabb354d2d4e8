"""The text of one fused kernel as it grows: what C++ and CUDA kernels write in the same words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import prod

from agent.tuner.planning.expression import literal, spell
from agent.tuner.planning.fused import Fused, Nest
from agent.tuner.planning.schedule import Schedule
from agent.tuner.tracing.graph import Kind, Node

TORCH_TYPES = {"float32": "torch::kFloat32", "int64": "torch::kInt64", "bool": "torch::kBool"}


def declaration(kernel: Fused) -> str:
    """The C++ signature, without its semicolon."""
    result = "torch::Tensor" if len(kernel.outputs) == 1 else "std::vector<torch::Tensor>"
    words = [
        f"double a{i}" if o.node.op == "scalar" else f"torch::Tensor t{i}"
        for i, o in enumerate(kernel.operands)
    ]
    return f"{result} {kernel.name}({', '.join(words)})"


class KernelText:
    """Lines, names and expressions. Values are called `v<n>` by their position in the body."""

    staged: Mapping[Node, object]
    """Values that an earlier pass has left behind."""

    def __init__(self, kernel: Fused, schedule: Schedule, depth: int = 0) -> None:
        self.kernel = kernel
        self.schedule = schedule
        self.lines: list[str] = []
        self.depth = depth
        self.number = {n: i for i, n in enumerate(kernel.body)}
        self.columns = kernel.nest is Nest.COLUMNS

    def put(self, *lines: str) -> None:
        """Append lines; braces at their ends set the indentation."""
        for line in lines:
            if line.startswith("}"):
                self.depth -= 1
            self.lines.append(line if line.startswith("#") else "  " * self.depth + line)
            if line.endswith("{"):
                self.depth += 1

    def name(self, node: Node) -> str:
        """How a value is called where it is used."""
        if node.kind is Kind.CONST:
            return literal(node)
        if node.kind is Kind.IOTA:
            tag, position = self.kernel.counters[node]
            if tag != "o":
                return self.counted(tag)
            sizes = self.kernel.outer
            return f"((int64_t)row / {prod(sizes[position + 1 :])} % {sizes[position]})"
        if node in self.number:
            suffix = "[j]" if self.columns and node not in self.kernel.full else ""
            return f"v{self.number[node]}{suffix}"
        position = self.kernel.operand(node)
        return f"s{position}" if node.op == "scalar" else self.operand_name(position)

    def counted(self, tag: str) -> str:
        """The index along the reduced (`r`) or inner (`i`) dimension, as 64 bits."""
        raise NotImplementedError

    def operand_name(self, position: int) -> str:
        """An operand's value at an element."""
        return f"x{position}"

    def spelt(self, node: Node) -> str:
        """The C expression of a POINTWISE node."""
        text = spell(node, self.name)
        return text[1:-1] if re.fullmatch(r"\([^()]*\)", text) else text

    def offset(self, strides: Sequence[int], row: str = "row") -> str:
        """Offset of an operand for the flattened outer index `row`."""
        sizes = self.kernel.outer
        if not any(strides):
            return "0"
        natural = [prod(sizes[d + 1 :]) for d in range(len(sizes))]
        unit = strides[-1]
        if unit and all(s == n * unit for s, n in zip(strides, natural, strict=True)):
            return f"{row} * {unit}" if unit > 1 else row
        terms = []
        for d, stride in enumerate(strides):
            if stride:
                index = f"({row} / {natural[d]})" if natural[d] > 1 else row
                index = f"{index} % {sizes[d]}" if d > 0 else index
                terms.append(f"{index} * {stride}")
        return " + ".join(terms)

    def demand(self, roots: Iterable[Node]) -> list[Node]:
        """Full body nodes to be computed for `roots`, operands before users; staged ones end it."""
        wanted: set[Node] = set()
        stack = list(roots)
        while stack:
            node = stack.pop()
            if node in wanted or node not in self.kernel.full or node not in self.number:
                continue
            wanted.add(node)
            if node not in self.staged:
                stack.extend(node.args)
        return [n for n in self.kernel.body if n in wanted]
