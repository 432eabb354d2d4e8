"""The loop nests of a C++ kernel: OpenMP over rows, `omp simd` along them."""

from __future__ import annotations

from collections.abc import Iterable

from agent.tuner.cpp.sums import BLOCK, Accumulators
from agent.tuner.kernel_text import KernelText, declaration
from agent.tuner.planning.expression import CTYPES
from agent.tuner.planning.fused import Fused, Nest
from agent.tuner.planning.schedule import Schedule
from agent.tuner.planning.staging import plan_staging
from agent.tuner.tracing.graph import Node


class CppKernel(KernelText):
    """One function."""

    WRONG = 'TORCH_CHECK(t{i}.numel() == {n}, "{name}: operand {i} has another size");'
    RESTRICT = " __restrict__"
    # Bytes among floats would make the compiler leave a loop without any vectors.
    MASK = "int32_t"

    def __init__(self, kernel: Fused, schedule: Schedule) -> None:
        super().__init__(kernel, schedule)
        self.staged: dict[Node, int] = {}
        """Value -> number of the buffer in which a pass has left it."""
        stack = kernel.nest is Nest.ROWS and schedule["stage"] == "stack"
        self.buffers, self.filled = plan_staging(kernel) if stack else ({}, {})

    def text(self) -> str:
        """The whole function."""
        kernel, chunk = self.kernel, self.schedule.number("chunk")
        self.put(f"{declaration(kernel)} {{")
        self.take_arguments()
        self.make_results()
        if kernel.nest is Nest.TOTAL:
            self._total(chunk * 1024)
        elif kernel.nest is Nest.ROWS:
            self._rows(chunk)
        elif kernel.width >= chunk * 1024 or kernel.rows == 1:
            self._pieces(chunk * 1024)
        else:
            self._rows(max(1, chunk * 1024 // kernel.width))
        self.give_results()
        self.put("}")
        return "\n".join(self.lines) + "\n"

    def _parallel(self, tasks: int) -> None:
        """Open the loop over tasks."""
        threads = self.schedule["threads"]
        if threads != "one":
            half = " num_threads(std::max(1, omp_get_max_threads() / 2))"
            self.put(
                f"#pragma omp parallel for schedule(static){half if threads == 'half' else ''}"
            )
        self.put(f"for (int64_t task = 0; task < {tasks}; ++task) {{")

    def _pieces(self, chunk: int) -> None:
        """A part of a row for each task."""
        width = self.kernel.width
        blocks = -(-width // chunk)
        self._parallel(self.kernel.rows * blocks)
        self.put(f"const int64_t row = task / {blocks}, begin = task % {blocks} * {chunk};")
        self.put(f"const int64_t end = std::min<int64_t>({width}, begin + {chunk});")
        self.point_at_row()
        self._results("begin", "end")
        self.put("}")

    def _rows(self, some: int) -> None:
        """Several rows for each task."""
        kernel, width = self.kernel, str(self.kernel.width)
        self._parallel(-(-kernel.rows // some))
        self.put(f"const int64_t last = std::min<int64_t>({kernel.rows}, (task + 1) * {some});")
        self.put(f"for (int64_t row = task * {some}; row < last; ++row) {{")
        self.point_at_row()
        self.put(*(f"alignas(64) float g{s}[{width}];" for s in self.buffers.values()))
        self.put(*map(self.define, kernel.row_values(0)))
        for level in range(1, kernel.passes + 1):
            self._pass(level, "0", width)
            self.put(*map(self.define, kernel.row_values(level)))
        self._results("0", width)
        self.put("}", "}")

    def _results(self, begin: str, end: str) -> None:
        """Store a row's numbers, and elements `begin` to `end` of full outputs."""
        for i, node in enumerate(self.kernel.outputs):
            if node in self.kernel.full:
                at = f"o{i} + row * {self.kernel.width}"
                self.put(f"{CTYPES[node.dtype]}* __restrict__ q{i} = {at};")
            else:
                self.put(f"o{i}[row] = {self.name(node)};")
        self._store(begin, end)

    def _store(self, begin: str, end: str) -> None:
        """Compute the full outputs for elements `begin` to `end` of a row and store them."""
        full = self.kernel.stored
        if not full:
            return
        streaming = self.schedule["stores"] == "stream"
        stream = [i for i, node in full if streaming and node.dtype == "float32"]
        if stream:
            begin, end = self._open_blocks(begin, end)
            self.put(*(f"alignas(64) float w{i}[{BLOCK}];" for i in stream))
        self._open_elements(begin, end)
        self._elements([node for _, node in full])
        for i, node in full:
            target = f"w{i}[i - block]" if i in stream else f"q{i}[i]"
            self.put(f"{target} = {self.name(node)};")
        self.put("}")
        if stream:
            self.put(*(f"stream_out(q{i} + block, w{i}, stop - block);" for i in stream), "}")

    def _open_blocks(self, begin: str, end: str) -> tuple[str, str]:
        """Open the loop over blocks; where a block begins and ends."""
        self.put(f"for (int64_t block = {begin}; block < {end}; block += {BLOCK}) {{")
        self.put(f"const int64_t stop = std::min<int64_t>({end}, block + {BLOCK});")
        return "block", "stop"

    def _open_elements(self, begin: str, end: str, reductions: Iterable[str] = ()) -> None:
        if self.schedule["vec"] != "1":
            self.put(" ".join(["#pragma omp simd", *reductions]))
        self.put(f"for (int64_t i = {begin}; i < {end}; ++i) {{")

    def _elements(self, roots: list[Node]) -> None:
        """Loads and expressions that the values `roots` need at element `i`."""
        demanded = self.demand(roots)
        read = self.read(demanded, roots)
        for i, operand in enumerate(self.kernel.operands):
            if operand.node in read and operand.along:
                self.put(f"const {CTYPES[operand.node.dtype]} x{i} = p{i}[i];")
        for node in demanded:
            if node in self.staged:
                self.put(f"const float v{self.number[node]} = g{self.staged[node]}[i];")
            else:
                self.put(self.define(node))

    def _pass(self, level: int, begin: str, end: str) -> None:
        """The reductions of one level over elements `begin` to `end` of a row."""
        found = self.kernel.found(level)
        sums = Accumulators(self, found)
        self.put(*sums.declarations())
        if sums.blocked:
            begin, end = self._open_blocks(begin, end)
            self.put(*sums.block_declarations())
        self._open_elements(begin, end, sums.clauses())
        stored = self.filled.get(level, [])
        self._elements([*sums.roots, *stored])
        for node in stored:
            self.put(f"g{self.buffers[node]}[i] = v{self.number[node]};")
        self.put(*sums.updates(), "}")
        if sums.blocked:
            self.put(*sums.block_ends(), "}")
        self.put(*sums.results())
        self.staged.update({n: self.buffers[n] for n in stored})

    def _total(self, chunk: int) -> None:
        """A part of the only row for each task, and the tasks' parts in order."""
        kernel, found = self.kernel, self.kernel.reductions
        blocks = -(-kernel.width // chunk)
        self.point_at_row("0")
        self.put(*map(self.define, kernel.row_values(0)))
        self.put(*(f"std::vector<double> part{self.number[n]}({blocks});" for n in found))
        self._parallel(blocks)
        self.put(f"const int64_t first = task * {chunk};")
        self.put(f"const int64_t last = std::min<int64_t>({kernel.width}, first + {chunk});")
        self._pass(1, "first", "last")
        self.put(*(f"part{self.number[n]}[task] = v{self.number[n]}_;" for n in found), "}")
        self.put(*Accumulators(self, found).combine(blocks))
        self.put(*map(self.define, kernel.row_values(1)))
        self.put(*(f"o{i}[0] = {self.name(n)};" for i, n in enumerate(kernel.outputs)))
