"""The text of one fused kernel as it grows: what C++ and CUDA kernels write in the same words.

Values are called `v<n>` by their position in the body, operands `a<n>` (pointer), `p<n>` (its row)
and `x<n>` (value), outputs `o<n>`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import ClassVar

from agent.tuner.planning.expression import CTYPES, literal, spell
from agent.tuner.planning.fused import Fused
from agent.tuner.planning.schedule import Schedule
from agent.tuner.tracing.graph import Kind, Node

TORCH_TYPES = {"float32": "torch::kFloat32", "bool": "torch::kBool"}
START = {"sum": "0", "max": "-INFINITY", "min": "INFINITY"}
"""Of a running result."""


def declaration(kernel: Fused) -> str:
    """The C++ signature, without its semicolon."""
    result = "torch::Tensor" if len(kernel.outputs) == 1 else "std::vector<torch::Tensor>"
    words = [
        f"double a{i}" if o.node.op == "scalar" else f"torch::Tensor t{i}"
        for i, o in enumerate(kernel.operands)
    ]
    return f"{result} {kernel.name}({', '.join(words)})"


class KernelText:
    """Lines, names and expressions."""

    WRONG: ClassVar[str]
    """When an operand is refused, and how: patterns over `i` and `n`, the number of elements."""
    RESTRICT: ClassVar[str] = ""
    """After a pointer's type."""
    MASK: ClassVar[str] = "bool"
    """C type of the elements of a mask as they are read."""

    def __init__(self, kernel: Fused, schedule: Schedule) -> None:
        self.kernel = kernel
        self.schedule = schedule
        self.lines: list[str] = []
        self.depth = 0
        self.number = {n: i for i, n in enumerate(kernel.body)}
        self.staged: Mapping[Node, object] = {}
        """Values that an earlier pass has left behind."""

    def put(self, *lines: str) -> None:
        """Append lines; braces at their ends set the indentation."""
        for line in lines:
            if line.startswith("}"):
                self.depth -= 1
            self.lines.append(line if line.startswith("#") else "  " * self.depth + line)
            if line.endswith("{"):
                self.depth += 1

    # Host -----------------------------------------------------------------------------------------

    def take_arguments(self) -> None:
        """Check the operands and point at them."""
        for i, operand in enumerate(self.kernel.operands):
            node, ctype = operand.node, self.memory_type(operand.node)
            if node.op == "scalar":
                self.put(f"const float s{i} = (float)a{i};")
                continue
            self.put(self.WRONG.format(i=i, n=node.numel, name=self.kernel.name))
            wide = ".to(torch::kInt32)" if ctype == "int32_t" else ""
            self.put(f"t{i} = t{i}{wide}.contiguous();")
            self.put(f"const {ctype}*{self.RESTRICT} a{i} = t{i}.data_ptr<{ctype}>();")

    def make_results(self) -> None:
        """Allocate the outputs and point at them."""
        for i, node in enumerate(self.kernel.outputs):
            ctype = CTYPES[node.dtype]
            sizes = ", ".join(map(str, node.shape))
            options = f"t{self.first}.options().dtype({TORCH_TYPES[node.dtype]})"
            self.put(f"auto r{i} = torch::empty({{{sizes}}}, {options});")
            self.put(f"{ctype}*{self.RESTRICT} o{i} = r{i}.data_ptr<{ctype}>();")

    def give_results(self) -> None:
        """Return the outputs."""
        names = [f"r{i}" for i in range(len(self.kernel.outputs))]
        self.put(f"return {names[0] if len(names) == 1 else '{' + ', '.join(names) + '}'};")

    @property
    def first(self) -> int:
        """The first operand that is a tensor."""
        return next(i for i, o in enumerate(self.kernel.operands) if o.node.op != "scalar")

    def memory_type(self, node: Node) -> str:
        """C type of an operand's elements."""
        return self.MASK if node.dtype == "bool" else CTYPES[node.dtype]

    # Values ---------------------------------------------------------------------------------------

    def name(self, node: Node) -> str:
        """How a value is called where it is used."""
        if node.kind is Kind.CONST:
            return literal(node)
        if node in self.number:
            return f"v{self.number[node]}"
        return f"{'s' if node.op == 'scalar' else 'x'}{self.kernel.operand(node)}"

    def define(self, node: Node) -> str:
        """A value as a constant."""
        text = spell(node, self.name)
        text = text[1:-1] if re.fullmatch(r"\([^()]*\)", text) else text
        return f"const {CTYPES[node.dtype]} v{self.number[node]} = {text};"

    def point_at_row(self, row: str = "row") -> None:
        """Pointers to the row of each operand; values of those that are constant along it."""
        for i, operand in enumerate(self.kernel.operands):
            if operand.node.op == "scalar":
                continue
            node, offset = operand.node, self.offset(operand.outer, row)
            if operand.along:
                at = f" + {offset}" if offset != "0" else ""
                self.put(f"const {self.memory_type(node)}* __restrict__ p{i} = a{i}{at};")
            else:
                self.put(f"const {CTYPES[node.dtype]} x{i} = a{i}[{offset}];")

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

    def read(self, demanded: Iterable[Node], roots: Iterable[Node]) -> set[Node]:
        """What has to be known for `demanded` to be computed and for `roots` to be used."""
        return {a for n in demanded if n not in self.staged for a in n.args} | set(roots)


class Sums:
    """The running results `c<n>` of the reductions of one pass."""

    def __init__(self, writer: KernelText, reductions: Sequence[Node]) -> None:
        self.items = [(writer.number[n], n.op, writer.name(n.args[0])) for n in reductions]
        """Number, operation, and the value of an element."""
        self.roots = [n.args[0] for n in reductions]
        """What has to be known of each element."""
        self.acc = writer.schedule.choices.get("acc", "fp64")

    def kind(self, op: str) -> str:
        """C type of the running result."""
        return "double" if op == "sum" and self.acc != "fp32" else "float"

    def running(self, n: int, op: str) -> str:
        """What takes in an element."""
        return f"c{n}"

    def declarations(self) -> list[str]:
        """Before the pass."""
        return [f"{self.kind(op)} c{n} = {START[op]};" for n, op, _ in self.items]

    def updates(self) -> list[str]:
        """For one element."""
        running = [(self.running(n, op), op, value) for n, op, value in self.items]
        return [f"{name} = {combined(op, name, value)};" for name, op, value in running]


def combined(op: str, total: str, value: str) -> str:
    """The C expression that takes one more value into a running result."""
    if op == "sum":
        return f"{total} + {value}"
    return f"{value} {'>' if op == 'max' else '<'} {total} ? {value} : {total}"
