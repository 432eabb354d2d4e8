"""CUDA kernels that reduce along a dimension which others follow: neighbours are read together."""

from __future__ import annotations

from math import gcd

from agent.tuner.cpp.sums import START, combined
from agent.tuner.cuda.sums import OPERATIONS, CudaSums, greatest
from agent.tuner.cuda.values import CudaValues
from agent.tuner.planning.expression import CTYPES
from agent.tuner.tracing.graph import Node


class CudaColumns(CudaValues):
    """A thread has V columns; `split` threads share them and take every `split`-th element.

    `row` is the place among the outer dimensions, `i` that along the reduced one, `c` the column.
    """

    def text(self) -> str:
        """The whole translation of the kernel."""
        kernel, name = self.kernel, self.kernel.name
        deep = gcd(int(self.choice("split") or "1"), self.threads)
        self.deep, self.wide = deep, self.threads // deep
        self.open_device(f"{name}_kernel")
        self.put(f"constexpr int X = {self.wide}, Y = {deep}, PACKS = {kernel.width} / V;")
        self.put("constexpr int TILES = (PACKS + X - 1) / X;")
        self.put("const int y = threadIdx.x / X;")
        self.put("const int pack = blockIdx.x % TILES * X + threadIdx.x % X;")
        self.put("const bool live = pack < PACKS;")
        self.put(f"const {self.index} row = blockIdx.x / TILES;")
        self.put("const int c = (live ? pack : PACKS - 1) * V;")
        self._pointers()
        self._row_values(0)
        for level in range(1, kernel.passes + 1):
            self._pass([n for n in kernel.reductions if kernel.level[n] == level])
            self._row_values(level)
        self._results()
        self.put("}", "")
        self.open_launcher(f"{name}_launch")
        self.put(f"const int64_t tiles = ({kernel.width} / V + {self.wide - 1}) / {self.wide};")
        self.launch(f"{name}_kernel", f"tiles * {kernel.rows}")
        self.put("}", "")
        self.open_host()
        self.close_host(f"{name}_launch")
        return "\n".join(self.lines) + "\n"

    def _pointers(self) -> None:
        for i, operand in enumerate(self.kernel.operands):
            if operand.node.op == "scalar":
                continue
            ctype, offset = CTYPES[operand.node.dtype], self.offset(operand.outer)
            at = f" + {offset}" if offset != "0" else ""
            if self.along(i):
                self.put(f"const {ctype}* __restrict__ p{i} = a{i}{at} + c;")
            elif any(operand.reduced):
                self.put(f"const {ctype}* __restrict__ p{i} = a{i}{at};")
            else:
                self.put(f"const {ctype} x{i} = a{i}[{offset}];")

    def _step(self, position: int) -> int:
        return next(iter(self.kernel.operands[position].reduced), 0)

    def place(self, position: int) -> str:
        """Some way down the column."""
        step = self._step(position)
        return f"p{position} + ({self.index})i * {step}" if step else f"p{position}"

    def scattered(self, position: int) -> list[str]:
        """What varies along the reduced dimension only."""
        step, node = self._step(position), self.kernel.operands[position].node
        load = f"const {CTYPES[node.dtype]} x{position} = p{position}[i * {step}];"
        return [load] if step else []

    def _row_values(self, level: int) -> None:
        ready = self.row_values(level)
        if not ready:
            return
        self.put(*(f"{CTYPES[n.dtype]} v{self.number[n]}[V];" for n in ready))
        each = [f"v{self.number[n]}[j] = {self.spelt(n)};" for n in ready]
        self.elements([a for n in ready for a in n.args], each)

    def _pass(self, found: list[Node]) -> None:
        sums = CudaSums(self, found, {})
        each = []
        for node in found:
            n, value = self.number[node], self.name(node.args[0])
            self.put(f"{sums.kind(node)} c{n}[V];")
            if node.op.startswith("arg"):
                self.put(f"int k{n}[V];")
                sign = ">" if node.op == "argmax" else "<"
                each.append(f"if ({value} {sign} c{n}[j]) {{ c{n}[j] = {value}; k{n}[j] = i; }}")
            else:
                each.append(f"c{n}[j] = {combined(node.op, f'c{n}[j]', value)};")
        self.put("#pragma unroll", "for (int j = 0; j < V; ++j) {")
        for node in found:
            n = self.number[node]
            self.put(f"c{n}[j] = {START[node.op]};")
            if node.op.startswith("arg"):
                self.put(f"k{n}[j] = {self.kernel.row};")
        self.put("}")
        self._open_walk()
        self.elements(sums.roots(), each)
        self.put("}")
        for node in found:
            self._join(node)

    def _open_walk(self) -> None:
        self.put(f"#pragma unroll {self.choice('items')}")
        self.put(f"for (int i = y; i < {self.kernel.row}; i += Y) {{")

    def _join(self, node: Node) -> None:
        n = self.number[node]
        if node.op.startswith("arg"):
            self.put(f"column_place<X, Y, {greatest(node)}>(c{n}, k{n});")
            self.put(f"int64_t v{n}[V];")
            result = f"k{n}[j] < {self.kernel.row} ? k{n}[j] : 0"
        else:
            self.put(f"column_reduce<X, Y, {OPERATIONS[node.op]}>(c{n});")
            self.put(f"float v{n}[V];")
            result = f"(float)c{n}[j]"
        self.put("#pragma unroll", f"for (int j = 0; j < V; ++j) v{n}[j] = {result};")

    def _results(self) -> None:
        kernel = self.kernel
        full = []
        for i, output in enumerate(kernel.outputs):
            if output.full:
                at = f"(row * {kernel.row} + i) * {kernel.width} + c"
                full.append((i, f"o{i} + {at}"))
                continue
            self.put("if (live && y == 0) {", "#pragma unroll")
            target = f"o{i}[row * {kernel.width} + c + j]"
            self.put(f"for (int j = 0; j < V; ++j) {target} = {self.name(output.node)};", "}")
        if full:
            self._open_walk()
            self.outputs(full, "if (live) ")
            self.put("}")
