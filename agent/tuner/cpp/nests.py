"""The loop nests of a C++ kernel: OpenMP over rows, `omp simd` along them."""

from __future__ import annotations

from agent.tuner.cpp.sums import BLOCK, START, Accumulators, combined
from agent.tuner.cpp.values import CppValues
from agent.tuner.kernel_text import declaration
from agent.tuner.planning.expression import CTYPES
from agent.tuner.planning.fused import Nest
from agent.tuner.planning.staging import Staging, plan_staging
from agent.tuner.tracing.graph import Kind


class CppKernel(CppValues):
    """One function, whole."""

    def text(self) -> str:
        """The whole function."""
        kernel = self.kernel
        self._arguments()
        self._allocate()
        {
            Nest.MAP: self._map,
            Nest.ROWS: self._rows,
            Nest.COLUMNS: self._columns,
            Nest.TOTAL: self._total,
        }[kernel.nest]()
        names = [f"r{i}" for i in range(len(kernel.outputs))]
        self.put(f"return {names[0] if len(names) == 1 else '{' + ', '.join(names) + '}'};")
        return f"{declaration(kernel)} {{\n" + "\n".join(self.lines) + "\n}\n"

    def _map(self) -> None:
        kernel, chunk = self.kernel, self.schedule.number("chunk") * 1024
        width, rows = max(kernel.width, 1), max(kernel.rows, 1)
        if width >= chunk or rows == 1:
            blocks = -(-width // chunk)
            self._parallel(str(rows * blocks))
            self.put(f"const int64_t row = task / {blocks}, begin = task % {blocks} * {chunk};")
            self.put(f"const int64_t end = std::min<int64_t>({width}, begin + {chunk});")
            self._map_row("begin", "end", width)
        else:
            some = max(1, chunk // width)
            self._parallel(str(-(-rows // some)))
            self.put(f"const int64_t last = std::min<int64_t>({rows}, (task + 1) * {some});")
            self.put(f"for (int64_t row = task * {some}; row < last; ++row) {{")
            self._map_row("0", str(width), width)
            self.put("}")
        self.put("}")

    def _map_row(self, begin: str, end: str, width: int) -> None:
        self._row_pointers("row")
        for i, output in enumerate(self.kernel.outputs):
            ctype = CTYPES[output.node.dtype]
            self.put(f"{ctype}* __restrict__ q{i} = o{i} + row * {width};")
        self._store_loop(begin, end)

    def _store_loop(self, begin: str, end: str) -> None:
        """Compute the full outputs for elements `begin` to `end` of a row and store them."""
        full = [(i, o) for i, o in enumerate(self.kernel.outputs) if o.full]
        stream = {i for i, o in full if self.streaming and o.node.dtype == "float32"}
        masked = self.kernel.nest is Nest.MAP and self.masks
        if stream or masked:
            self.put(f"for (int64_t block = {begin}; block < {end}; block += {BLOCK}) {{")
            self.put(f"const int64_t stop = std::min<int64_t>({end}, block + {BLOCK});")
            self.put(*(f"alignas(64) float w{i}[{BLOCK}];" for i in sorted(stream)))
            begin, end = "block", "stop"
        if masked:
            self.put(*(f"int32_t m{i}[{BLOCK}];" for i in self.masks))
            self.mask_base = " - block"
            self._widen(begin, end)
        self._simd()
        self.put(f"for (int64_t i = {begin}; i < {end}; ++i) {{")
        self._elements((o.node for _, o in full), "i")
        for i, output in full:
            target = f"w{i}[i - block]" if i in stream else f"q{i}[i]"
            self.put(f"{target} = {self.name(output.node)};")
        self.put("}")
        self.put(*(f"stream_out(q{i} + block, w{i}, stop - block);" for i in sorted(stream)))
        if stream or masked:
            self.put("}")

    def _rows(self) -> None:
        kernel, some = self.kernel, self.schedule.number("chunk")
        self.staging = plan_staging(kernel) if self.schedule["stage"] == "stack" else Staging()
        self._parallel(str(-(-kernel.rows // some)))
        self.put(f"const int64_t last = std::min<int64_t>({kernel.rows}, (task + 1) * {some});")
        self.put(*(f"std::vector<int32_t> m{i}({kernel.row});" for i in self.masks))
        self.put(f"for (int64_t row = task * {some}; row < last; ++row) {{")
        self._row_pointers("row")
        self._widen("0", str(kernel.row))
        self.put(*(f"alignas(64) float g{s}[{kernel.row}];" for s in self.staging.buffers.values()))
        self._row_values(0)
        for level in range(1, kernel.passes + 1):
            self._pass(level, "0", str(kernel.row))
            self._row_values(level)
        for i, output in enumerate(kernel.outputs):
            if output.full:
                ctype = CTYPES[output.node.dtype]
                self.put(f"{ctype}* __restrict__ q{i} = o{i} + row * {kernel.row};")
            else:
                self.put(f"o{i}[row] = {self.name(output.node)};")
        if any(o.full for o in kernel.outputs):
            self._store_loop("0", str(kernel.row))
        self.put("}", "}")

    def _row_values(self, level: int) -> None:
        """Row-level expressions that are known after `level` passes."""
        kernel = self.kernel
        ready = [
            n
            for n in kernel.body
            if n.kind is Kind.POINTWISE and n not in kernel.full and kernel.level[n] == level
        ]
        if not ready:
            return
        if not self.columns:
            for node in ready:
                self.put(f"const {CTYPES[node.dtype]} v{self.number[node]} = {self.spelt(node)};")
            return
        self.put(*(f"{CTYPES[n.dtype]} v{self.number[n]}[{self._tile}];" for n in ready))
        self._simd()
        self.put("for (int64_t j = 0; j < count; ++j) {")
        self._loads({a for n in ready for a in n.args}, "")
        for node in ready:
            self.put(f"v{self.number[node]}[j] = {self.spelt(node)};")
        self.put("}")

    def _pass(self, level: int, begin: str, end: str) -> None:
        """The reductions of one level over elements `begin` to `end` of a row."""
        reductions = [n for n in self.kernel.reductions if self.kernel.level[n] == level]
        sums = Accumulators(self, reductions)
        self.put(*sums.declarations())
        blocked = sums.blocked
        if blocked:
            self.put(f"for (int64_t block = {begin}; block < {end}; block += {BLOCK}) {{")
            self.put(f"const int64_t stop = std::min<int64_t>({end}, block + {BLOCK});")
            self.put(*sums.block_declarations())
            begin, end = "block", "stop"
        self._simd(sums.clauses())
        self.put(f"for (int64_t i = {begin}; i < {end}; ++i) {{")
        stored = self.staging.filled.get(level, [])
        self._elements([*(n.args[0] for n in reductions), *stored], "i")
        for node in stored:
            self.put(f"g{self.staging.buffers[node]}[i] = v{self.number[node]};")
        self.put(*sums.updates())
        self.put("}")
        if blocked:
            self.put(*sums.block_ends())
            self.put("}")
        self.put(*sums.results())
        self.staged.update({n: self.staging.buffers[n] for n in stored})

    def _total(self) -> None:
        kernel, chunk = self.kernel, self.schedule.number("chunk") * 1024
        blocks = -(-kernel.row // chunk)
        self._row_pointers("0")
        self._row_values(0)
        for level in range(1, kernel.passes + 1):
            found = [n for n in kernel.reductions if kernel.level[n] == level]
            for node in found:
                self.put(f"std::vector<double> part{self.number[node]}({blocks});")
            self._total_task(blocks, chunk)
            self._pass(level, "first", "last")
            self.put(*(f"part{self.number[n]}[task] = v{self.number[n]}_;" for n in found))
            self.put("}")
            for node in found:
                self.put(*Accumulators(self, [node]).combine(blocks))
            self._row_values(level)
        for i, output in enumerate(kernel.outputs):
            if not output.full:
                self.put(f"o{i}[0] = {self.name(output.node)};")
        if any(o.full for o in kernel.outputs):
            self._total_task(blocks, chunk)
            for i, output in enumerate(kernel.outputs):
                if output.full:
                    self.put(f"{CTYPES[output.node.dtype]}* __restrict__ q{i} = o{i};")
            self._store_loop("first", "last")
            self.put("}")

    def _total_task(self, blocks: int, chunk: int) -> None:
        self._parallel(str(blocks))
        self.put(f"const int64_t first = task * {chunk};")
        self.put(f"const int64_t last = std::min<int64_t>({self.kernel.row}, first + {chunk});")
        self.put(*(f"std::vector<int32_t> m{i}({chunk});" for i in self.masks))
        self.mask_base = " - first"
        self._widen("first", "last")

    # Columns --------------------------------------------------------------------------------------

    @property
    def _tile(self) -> int:
        return min(self.kernel.width, 16 * self.schedule.number("chunk"))

    def _columns(self) -> None:
        kernel, tile = self.kernel, self._tile
        tiles = -(-kernel.width // tile)
        self._parallel(str(kernel.rows * tiles))
        self.put(f"const int64_t row = task / {tiles}, first = task % {tiles} * {tile};")
        self.put(f"const int64_t count = std::min<int64_t>({tile}, {kernel.width} - first);")
        self._row_pointers("row")
        self._row_values(0)
        for level in range(1, kernel.passes + 1):
            self._column_pass(level)
            self._row_values(level)
        for i, output in enumerate(kernel.outputs):
            if not output.full:
                self.put("for (int64_t j = 0; j < count; ++j) {")
                self.put(f"o{i}[row * {kernel.width} + first + j] = {self.name(output.node)};")
                self.put("}")
        full = [(i, o) for i, o in enumerate(kernel.outputs) if o.full]
        if full:
            self.put(f"for (int64_t i = 0; i < {kernel.row}; ++i) {{")
            for i, output in full:
                at = f"(row * {kernel.row} + i) * {kernel.width} + first"
                self.put(f"{CTYPES[output.node.dtype]}* __restrict__ q{i} = o{i} + {at};")
            self._simd()
            self.put("for (int64_t j = 0; j < count; ++j) {")
            self._elements((o.node for _, o in full), "")
            self.put(*(f"q{i}[j] = {self.name(o.node)};" for i, o in full), "}", "}")
        self.put("}")

    def _column_pass(self, level: int) -> None:
        kernel, tile = self.kernel, self._tile
        found = [n for n in kernel.reductions if kernel.level[n] == level]
        double = self.schedule["acc"] != "fp32"
        for node in found:
            n = self.number[node]
            kind = "double" if node.op in ("sum", "prod") and double else "float"
            self.put(f"{kind} c{n}[{tile}];")
            if node.op.startswith("arg"):
                self.put(f"int64_t v{n}[{tile}];")
            start = START[node.op]
            zero = f" v{n}[j] = 0;" if node.op.startswith("arg") else ""
            self.put(f"for (int64_t j = 0; j < {tile}; ++j) {{ c{n}[j] = {start};{zero} }}")
        self.put(f"for (int64_t i = 0; i < {kernel.row}; ++i) {{")
        self._simd()
        self.put("for (int64_t j = 0; j < count; ++j) {")
        self._elements((n.args[0] for n in found), "")
        for node in found:
            n, value = self.number[node], self.name(node.args[0])
            if node.op.startswith("arg"):
                sign = ">" if node.op == "argmax" else "<"
                self.put(f"const bool better{n} = {value} {sign} c{n}[j];")
                self.put(f"c{n}[j] = better{n} ? {value} : c{n}[j];")
                self.put(f"v{n}[j] = better{n} ? i : v{n}[j];")
            else:
                self.put(f"c{n}[j] = {combined(node.op, f'c{n}[j]', value)};")
        self.put("}", "}")
        for node in found:
            n = self.number[node]
            if not node.op.startswith("arg"):
                self.put(f"float v{n}[{tile}];")
                self.put(f"for (int64_t j = 0; j < count; ++j) v{n}[j] = (float)c{n}[j];")
