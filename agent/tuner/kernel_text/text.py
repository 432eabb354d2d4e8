"""The text of one fused kernel: what C++ and CUDA write in the same words.

A kernel walks rows in passes: one for each level of its reductions, and one that stores. Values are
called `v<n>` by their position in the body, their running results `c<n>`, operands `a<n>`
(pointer), `p<n>` (its row) and `x<n>` (value), outputs `o<n>`, their rows `q<n>` and blocks `y<n>`,
staged values `g<n>`. Functions that end in an underscore (`exp_`, ...) are those of `maths.py`.
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import ClassVar

from agent.tuner.planning.fused import Fused
from agent.tuner.planning.schedule import Schedule
from agent.tuner.tracing.graph import Kind, Node

_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "eq": "==", "ne": "!=",
}  # fmt: skip
FUNCTIONS = ("exp", "expm1", "log", "log1p", "sigmoid", "tanh", "erf", "rsqrt")
"""Operations `f` that a function `f_` carries out."""

SPELLINGS: Mapping[str, str] = {
    **{op: f"({{0}} {sign} {{1}})" for op, sign in _INFIX.items()},
    **{op: f"{op}_({{0}})" for op in FUNCTIONS},
    "neg": "(-{0})",
    "not": "(!{0})",
    "abs": "fabsf({0})",
    "square": "({0} * {0})",
    "cube": "({0} * {0} * {0})",
    "recip": "(1.0f / {0})",
    "sqrt": "sqrtf({0})",
    "pow": "powf({0}, {1})",
    "max": "({0} > {1} ? {0} : {1})",
    "min": "({0} < {1} ? {0} : {1})",
    "where": "({0} ? {1} : {2})",
}
"""Operation -> C expression over the operands' names."""

COSTLY = frozenset([*FUNCTIONS, "pow", "div", "sqrt", "recip"])
"""Operations worth not doing twice."""

CTYPES = {"float32": "float", "bool": "bool"}
START = {"sum": "0", "max": "-INFINITY", "min": "INFINITY"}
"""Of a running result."""
COMBINED = {
    "sum": "{0} + {1}",
    "max": "{1} > {0} ? {1} : {0}",
    "min": "{1} < {0} ? {1} : {0}",
}
"""One more value taken into a running result."""

Placed = tuple[int, Node]
"""The position of a node among the operands or the outputs, and the node."""


def declaration(kernel: Fused) -> str:
    """The C++ signature, without its semicolon."""
    result = "torch::Tensor" if len(kernel.outputs) == 1 else "std::vector<torch::Tensor>"
    words = ", ".join(f"torch::Tensor t{i}" for i in range(len(kernel.operands)))
    return f"{result} {kernel.name}({words})"


def loading(
    kernels: Sequence[Fused], sources: Mapping[str, str], flags: Mapping[str, Sequence[str]]
) -> str:
    """The Python text that builds `sources` with `load_inline` and calls the module `kernels`.

    `sources` and `flags` are by argument of `load_inline`.
    """
    digest = hashlib.sha256(f"{sources}{flags}".encode()).hexdigest()[:12]
    texts = "\n".join(f'{name.upper()} = r"""\n{text}"""\n' for name, text in sources.items())
    options = [f"{name}=[{name.upper()}]," for name in sources]
    options.append(f"functions={[k.name for k in kernels]},")
    options += [f"{name}={list(words)}," for name, words in flags.items()]
    lines = "\n    ".join([f'name="tuned_{digest}",', *options]).replace("'", '"')
    return (
        "from torch.utils.cpp_extension import load_inline\n\n"
        f"{texts}\nkernels = load_inline(\n    {lines}\n)"
    )


class KernelText(ABC):
    """Lines, names and expressions; a backend says how rows and elements are walked."""

    CHECK: ClassVar[str]
    """What an operand must pass: a pattern over `i` and `n`, the number of elements."""
    JOINED: ClassVar[str]
    """A reduction's result, once its pass is over: a pattern over `op` and the running `total`."""
    staged_at: ClassVar[str]
    """The place of a staged value: a pattern over its number `g`."""
    stored_at: ClassVar[str]
    """The place of an element of a full output: a pattern over the output's position `i`."""
    guard: str = ""
    """The condition under which a row's number is stored."""

    def __init__(self, kernel: Fused, schedule: Schedule) -> None:
        self.kernel = kernel
        self.schedule = schedule
        self.lines: list[str] = []
        self.depth = 0
        self.number = {n: i for i, n in enumerate(kernel.body)}
        staging = schedule.choices.get("stage", "none") != "none"
        self.kept = plan_staging(kernel, self.worth_staging) if staging else {}
        self.buffers = [n for values in self.kept.values() for n in values]
        """All staged values; their numbers are their places here."""
        self.staged: set[Node] = set()
        """Values that an earlier pass has left behind."""

    def put(self, *lines: str) -> None:
        """Append lines; braces at their ends set the indentation."""
        for line in lines:
            if line.startswith("}"):
                self.depth -= 1
            self.lines.append(line if line.startswith("#") else "  " * self.depth + line)
            if line.endswith("{"):
                self.depth += 1

    # What a backend decides -----------------------------------------------------------------------

    @abstractmethod
    def worth_staging(self, node: Node) -> bool:
        """Whether it is faster to keep that value of each element than to compute it again."""

    @abstractmethod
    def open_walk(
        self, loads: Sequence[Placed], reductions: Sequence[Node], stored: Sequence[Placed]
    ) -> None:
        """Open the loop over a row's elements, for those reductions or outputs; load operands."""

    @abstractmethod
    def close_walk(self, stored: Sequence[Placed]) -> None:
        """Close what `open_walk` opened."""

    # Host -----------------------------------------------------------------------------------------

    def take_arguments(self) -> None:
        for i, operand in enumerate(self.kernel.operands):
            node = operand.node
            ctype = CTYPES[node.dtype]
            self.put(*self.CHECK.format(i=i, n=node.numel, name=self.kernel.name).split("\n"))
            self.put(f"const {ctype}* __restrict__ a{i} = t{i}.data_ptr<{ctype}>();")

    def make_results(self) -> None:
        for i, node in enumerate(self.kernel.outputs):
            ctype = CTYPES[node.dtype]
            sizes = ", ".join(map(str, node.shape))
            options = f"t0.options().dtype(torch::k{node.dtype.title()})"
            self.put(f"auto r{i} = torch::empty({{{sizes}}}, {options});")
            self.put(f"{ctype}* __restrict__ o{i} = r{i}.data_ptr<{ctype}>();")

    def give_results(self) -> None:
        names = [f"r{i}" for i in range(len(self.kernel.outputs))]
        self.put(f"return {names[0] if len(names) == 1 else '{' + ', '.join(names) + '}'};")

    # A row ----------------------------------------------------------------------------------------

    def row(self) -> None:
        self._point_at_row()
        self.put(*map(self.define, self.kernel.row_values(0)))
        for level in range(1, self.kernel.passes + 1):
            self._reduce(level)
            self.put(*map(self.define, self.kernel.row_values(level)))
        for i, node in enumerate(self.kernel.outputs):
            if node not in self.kernel.full:
                self.put(f"{self.guard}o{i}[row] = {self.name(node)};")
        if self.kernel.stored:
            self._store()

    def _point_at_row(self) -> None:
        """Pointers to the row of each operand; values of those that are constant along it."""
        for i, operand in enumerate(self.kernel.operands):
            ctype, offset = CTYPES[operand.node.dtype], self._offset(operand.outer)
            if operand.along:
                self.put(f"const {ctype}* __restrict__ p{i} = a{i} + {offset};")
            else:
                self.put(f"const {ctype} x{i} = a{i}[{offset}];")

    def _offset(self, strides: Sequence[int]) -> str:
        """Offset of an operand for the flattened outer index `row`."""
        sizes = self.kernel.outer
        natural = [prod(sizes[d + 1 :]) for d in range(len(sizes))]
        if any(strides) and all(
            s == n * strides[-1] for s, n in zip(strides, natural, strict=True)
        ):
            return f"row * {strides[-1]}"
        terms = []
        for d, stride in enumerate(strides):
            if stride:
                index = f"row / {natural[d]}" if natural[d] > 1 else "row"
                index = f"{index} % {sizes[d]}" if d > 0 else index
                terms.append(f"{index} * {stride}")
        return " + ".join(terms) or "0"

    def _reduce(self, level: int) -> None:
        """The reductions of one level, and the values that this pass leaves for later ones."""
        found, kept = self.kernel.found(level), self.kept.get(level, [])
        for node in found:
            wide = node.op == "sum" and self.schedule["acc"] == "fp64"
            self.put(f"{'double' if wide else 'float'} c{self.number[node]} = {START[node.op]};")
        values = [n.args[0] for n in found]
        lines = [f"{self._place(n)} = {self.name(n)};" for n in kept]
        for node, value in zip(found, values, strict=True):
            total = f"c{self.number[node]}"
            lines.append(f"{total} = {COMBINED[node.op].format(total, self.name(value))};")
        self._walk([*values, *kept], lines, reductions=found)
        for node in found:
            i = self.number[node]
            joined = self.JOINED.format(op=node.op.title(), total=f"c{i}")
            self.put(f"const float v{i} = (float){joined};")
        self.staged.update(kept)

    def _store(self) -> None:
        stored = self.kernel.stored
        for i, node in stored:
            at = f"o{i} + row * {self.kernel.width}"
            self.put(f"{CTYPES[node.dtype]}* __restrict__ q{i} = {at};")
        lines = [f"{self.stored_at.format(i=i)} = {self.name(node)};" for i, node in stored]
        self._walk([node for _, node in stored], lines, stored=stored)

    def _walk(
        self,
        roots: Sequence[Node],
        lines: Sequence[str],
        reductions: Sequence[Node] = (),
        stored: Sequence[Placed] = (),
    ) -> None:
        """One pass: the loads and expressions that `roots` need at each element, then `lines`."""
        demanded = self._demand(roots)
        read = {a for n in demanded if n not in self.staged for a in n.args} | set(roots)
        operands = enumerate(self.kernel.operands)
        leaves = [(i, o.node) for i, o in operands if o.along and o.node in read]
        self.open_walk([(i, n) for i, n in leaves if n not in self.staged], reductions, stored)
        for node in [n for _, n in leaves if n in self.staged] + demanded:
            if node in self.staged:
                self.put(f"const float {self.name(node)} = {self._place(node)};")
            else:
                self.put(self.define(node))
        self.put(*lines)
        self.close_walk(stored)

    def _demand(self, roots: Iterable[Node]) -> list[Node]:
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

    # Values ---------------------------------------------------------------------------------------

    def name(self, node: Node) -> str:
        if node.kind is Kind.CONST:
            text = "INFINITY" if abs(node.value) == float("inf") else f"{abs(node.value)!r}f"
            return f"(-{text})" if node.value < 0 else text
        if node in self.number:
            return f"v{self.number[node]}"
        return f"x{self.kernel.operand(node)}"

    def define(self, node: Node) -> str:
        text = SPELLINGS[node.op].format(*map(self.name, node.args))
        text = text[1:-1] if re.fullmatch(r"\([^()]*\)", text) else text
        return f"const {CTYPES[node.dtype]} v{self.number[node]} = {text};"

    def _place(self, node: Node) -> str:
        return self.staged_at.format(g=self.buffers.index(node))


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
