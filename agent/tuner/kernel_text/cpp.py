"""Fused kernels as C++: OpenMP over rows, or over pieces of long ones, `omp simd` along them."""

from __future__ import annotations

from collections.abc import Sequence

from agent.tuner.kernel_text.maths import prelude
from agent.tuner.kernel_text.text import COSTLY, CTYPES, KernelText, Target, declaration, loading
from agent.tuner.planning.fused import Fused
from agent.tuner.planning.schedule import Schedule
from agent.tuner.tracing.graph import Node

BLOCK = 256
"""Elements that are computed before they are streamed to memory."""

_STREAM = """\
static inline void stream_out(float* to, const float* from, int64_t n) {
  int64_t i = 0;
#if defined(__AVX__)
  for (; i < n && (reinterpret_cast<uintptr_t>(to + i) & 31); ++i) to[i] = from[i];
  for (; i + 8 <= n; i += 8) _mm256_stream_ps(to + i, _mm256_loadu_ps(from + i));
#endif
  for (; i < n; ++i) to[i] = from[i];
}
"""


class CppKernel(KernelText):
    """One function."""

    CHECK = (
        'TORCH_CHECK(t{i}.numel() == {n}, "{name}: operand {i} has another size");\n'
        "t{i} = t{i}.contiguous();"
    )
    staged_at = "g{g}[i]"

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
        if self.schedule["threads"] != "one":
            half = self.schedule["threads"] == "half"
            some = " num_threads(std::max(1, omp_get_max_threads() / 2))" if half else ""
            share = f"static, {chunk}" if kernel.reductions else "static"
            self.put(f"#pragma omp parallel for schedule({share}){some}")
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
        self, loads: Sequence[int], before: Sequence[str], reductions: Sequence[Node]
    ) -> None:
        begin, end = self.begin, self.end
        if before:
            self.put(f"for (int64_t block = {begin}; block < {end}; block += {BLOCK}) {{")
            self.put(f"const int64_t stop = std::min<int64_t>({end}, block + {BLOCK});", *before)
            begin, end = "block", "stop"
        if self.schedule["vec"] != "1":
            signs = {"sum": "+", "max": "max", "min": "min"}
            clauses = [f"reduction({signs[n.op]}:c{self.number[n]})" for n in reductions]
            self.put(" ".join(["#pragma omp simd", *clauses]))
        self.put(f"for (int64_t i = {begin}; i < {end}; ++i) {{")
        nodes = [(i, self.kernel.operands[i].node) for i in loads]
        self.put(*(f"const {CTYPES[n.dtype]} x{i} = p{i}[i];" for i, n in nodes))

    def close_walk(self, after: Sequence[str]) -> None:
        self.put("}", *([*after, "}"] if after else []))

    def joined(self, node: Node) -> str:
        return f"c{self.number[node]}"

    def target(self, position: int, node: Node) -> Target:
        i = position
        if self.schedule["stores"] == "plain" or node.dtype != "float32":
            return Target("", f"q{i}[i]", "")
        stored = f"stream_out(q{i} + block, y{i}, stop - block);"
        return Target(f"alignas(64) float y{i}[{BLOCK}];", f"y{i}[i - block]", stored)


def source(kernels: Sequence[Fused], schedule: Schedule) -> str:
    body = "\n".join(CppKernel(k, schedule).text() for k in kernels)
    width, stream = schedule.number("vec"), schedule["stores"] == "stream"
    headers = ("torch/extension.h", "cmath", "cstring", "vector", "algorithm", "omp.h")
    lines = [f"#include <{name}>" for name in headers]
    if stream:
        lines += ["#if defined(__AVX__)", "#include <immintrin.h>", "#endif"]
    lines.append('#pragma GCC optimize("no-math-errno", "no-trapping-math")')
    if width == 1:
        lines.append('#pragma GCC optimize("no-tree-vectorize")')
    else:
        pragma = f'#pragma GCC target("prefer-vector-width={32 * width}")'
        lines += ["#if defined(__x86_64__)", pragma, "#endif"]
    if schedule["unroll"] == "on":
        lines.append('#pragma GCC optimize("unroll-loops")')
    functions = prelude("cpp", schedule["maths"], body) + (_STREAM if stream else "")
    return "\n".join(lines) + f"\n\n{functions}\n{body}"


def load(kernels: Sequence[Fused], schedule: Schedule) -> str:
    flags = {
        "extra_cflags": ["-O3", "-march=native", "-fopenmp"],
        "extra_ldflags": ["-fopenmp"],
    }
    return loading(kernels, {"cpp_sources": source(kernels, schedule)}, flags)
