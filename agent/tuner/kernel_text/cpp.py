"""Fused kernels as C++: OpenMP over rows, or over pieces of long ones, `omp simd` along them."""

from __future__ import annotations

from collections.abc import Sequence

from agent.tuner.kernel_text.maths import prelude
from agent.tuner.kernel_text.text import COSTLY, CTYPES, KernelText, Placed, declaration, loading
from agent.tuner.planning.fused import Fused
from agent.tuner.planning.schedule import Schedule
from agent.tuner.tracing.graph import Node


class CppKernel(KernelText):
    CHECK = (
        'TORCH_CHECK(t{i}.numel() == {n}, "{name}: operand {i} has another size");\n'
        "t{i} = t{i}.contiguous();"
    )
    JOINED = "{total}"
    staged_at = "g{g}[i]"
    stored_at = "q{i}[i]"

    def text(self) -> str:
        self.put(f"{declaration(self.kernel)} {{")
        self.take_arguments()
        self.make_results()
        self._open_tasks()
        self.put(*(f"alignas(64) float g{g}[{self.end}];" for g in range(len(self.buffers))))
        self.row()
        self.put("}")
        self.give_results()
        self.put("}")
        return "\n".join(self.lines) + "\n"

    def _open_tasks(self) -> None:
        """Open the loop over rows, or over pieces of rows where nothing is reduced."""
        kernel, chunk = self.kernel, self.schedule.number("chunk")
        piece = kernel.width if kernel.reductions else min(kernel.width, chunk * 1024)
        pieces = -(-kernel.width // piece)
        if self.schedule["threads"] == "all":
            share = f"static, {chunk}" if kernel.reductions else "static"
            self.put(f"#pragma omp parallel for schedule({share})")
        self.put(f"for (int64_t task = 0; task < {kernel.rows * pieces}; ++task) {{")
        self.put(f"const int64_t row = task / {pieces};")
        self.begin, self.end = "0", str(kernel.width)
        if pieces > 1:
            self.put(f"const int64_t begin = task % {pieces} * {piece};")
            self.put(f"const int64_t end = std::min<int64_t>({kernel.width}, begin + {piece});")
            self.begin, self.end = "begin", "end"

    def worth_staging(self, node: Node) -> bool:
        inside = node in self.number
        return inside and (node.op in COSTLY or any(map(self.worth_staging, node.args)))

    def open_walk(
        self, loads: Sequence[Placed], reductions: Sequence[Node], stored: Sequence[Placed]
    ) -> None:
        signs = [(n, "+" if n.op == "sum" else n.op) for n in reductions]
        clauses = [f"reduction({sign}:c{self.number[n]})" for n, sign in signs]
        self.put(" ".join(["#pragma omp simd", *clauses]))
        self.put(f"for (int64_t i = {self.begin}; i < {self.end}; ++i) {{")
        self.put(*(f"const {CTYPES[n.dtype]} x{i} = p{i}[i];" for i, n in loads))

    def close_walk(self, stored: Sequence[Placed]) -> None:
        self.put("}")


def load(kernels: Sequence[Fused], schedule: Schedule) -> str:
    body = "\n".join(CppKernel(k, schedule).text() for k in kernels)
    headers = ("torch/extension.h", "cmath", "cstring", "vector", "algorithm", "omp.h")
    lines = [f"#include <{name}>" for name in headers]
    lines.append('#pragma GCC optimize("no-math-errno", "no-trapping-math")')
    pragma = f'#pragma GCC target("prefer-vector-width={32 * schedule.number("vec")}")'
    lines += ["#if defined(__x86_64__)", pragma, "#endif"]
    if schedule["unroll"] == "on":
        lines.append('#pragma GCC optimize("unroll-loops")')
    source = "\n".join(lines) + f"\n\n{prelude(schedule['maths'], body)}\n{body}"
    flags = {
        "extra_cflags": ["-O3", "-march=native", "-fopenmp"],
        "extra_ldflags": ["-fopenmp"],
    }
    return loading(kernels, {"cpp_sources": source}, flags)
