"""Names, loads and expressions of a C++ kernel: what its loops (`cpp_nests.py`) are made of."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from agent.tuner.kernel_text import TORCH_TYPES, KernelText
from agent.tuner.planning.expression import CTYPES
from agent.tuner.planning.fused import Fused, Nest
from agent.tuner.planning.schedule import Schedule
from agent.tuner.planning.staging import Staging
from agent.tuner.tracing.graph import Node


class CppValues(KernelText):
    """One function. Values are called `v<n>` by their position, operands `a<n>`, outputs `o<n>`."""

    def __init__(self, kernel: Fused, schedule: Schedule) -> None:
        super().__init__(kernel, schedule, depth=1)
        self.staging = Staging()
        self.staged: dict[Node, int] = {}
        """Values that a pass has left in their buffers."""
        self.masks = [
            i
            for i, o in enumerate(kernel.operands)
            if o.node.dtype == "bool" and not self.columns and any(o.reduced + o.inner)
        ]
        """Bool operands along the vector loop: widened first, since bytes among floats would make
        the compiler take four times as many lanes, and the rest of a row without any."""

    # Text -----------------------------------------------------------------------------------------

    def _arguments(self) -> None:
        for i, operand in enumerate(self.kernel.operands):
            node, ctype = operand.node, CTYPES[operand.node.dtype]
            if node.op == "scalar":
                self.put(f"const float s{i} = (float)a{i};")
                continue
            message = f'"{self.kernel.name}: operand {i} has another size"'
            self.put(f"TORCH_CHECK(t{i}.numel() == {node.numel}, {message});")
            if self._pitched(i):
                self.put(f"if (!rows_apart(t{i})) t{i} = t{i}.contiguous();")
                self.put(f"const int64_t pitch{i} = t{i}.stride(t{i}.dim() - 2);")
            else:
                self.put(f"t{i} = t{i}.contiguous();")
            self.put(f"const {ctype}* __restrict__ a{i} = t{i}.data_ptr<{ctype}>();")

    def _allocate(self) -> None:
        first = next(i for i, o in enumerate(self.kernel.operands) if o.node.op != "scalar")
        for i, output in enumerate(self.kernel.outputs):
            node, ctype = output.node, CTYPES[output.node.dtype]
            sizes = ", ".join(map(str, node.shape))
            options = f"t{first}.options().dtype({TORCH_TYPES[node.dtype]})"
            self.put(f"auto r{i} = torch::empty({{{sizes}}}, {options});")
            self.put(f"{ctype}* __restrict__ o{i} = r{i}.data_ptr<{ctype}>();")

    def _parallel(self, tasks: str) -> None:
        """Open the loop over tasks."""
        threads = self.schedule["threads"]
        if threads != "one":
            half = " num_threads(std::max(1, omp_get_max_threads() / 2))"
            self.put(
                f"#pragma omp parallel for schedule(static){half if threads == 'half' else ''}"
            )
        self.put(f"for (int64_t task = 0; task < {tasks}; ++task) {{")

    def _simd(self, reductions: Iterable[str] = ()) -> None:
        if self.schedule["vec"] != "1":
            self.put(" ".join(["#pragma omp simd", *reductions]))

    @property
    def streaming(self) -> bool:
        """Whether full outputs go past the caches."""
        return self.schedule["stores"] == "stream"

    # Values ---------------------------------------------------------------------------------------

    def counted(self, tag: str) -> str:
        """The index along the reduced (`r`) or inner (`i`) dimension."""
        return "(first + j)" if tag == "i" and self.columns else "i"

    def operand_name(self, position: int) -> str:
        """An operand's value at an element; those read in place are arrays."""
        return f"x{position}" + ("[j]" if self._row_array(position) else "")

    def _row_array(self, position: int) -> bool:
        """A COLUMNS operand that varies along the inner dimension only: read in place."""
        operand = self.kernel.operands[position]
        return self.columns and operand.reduced == (0,) and operand.inner == (1,)

    def _pitched(self, position: int) -> bool:
        """A slice along the last dimension, walked row by row: read where it lies, uncopied."""
        operand = self.kernel.operands[position]
        node = operand.node
        if node.op != "narrow" or node.dims[0] != len(node.shape) - 1 or len(node.shape) < 2:
            return False
        width, sizes = node.shape[-1], self.kernel.outer
        rows = tuple(width * prod(sizes[d + 1 :]) for d in range(len(sizes)))
        whole = self.kernel.nest in (Nest.MAP, Nest.ROWS) and bool(sizes)
        return whole and width in (self.kernel.width, self.kernel.row) and operand.outer == rows

    def _row_pointers(self, row: str) -> None:
        """Pointers to the row of each operand; values of those that are constant along it."""
        for i, operand in enumerate(self.kernel.operands):
            if operand.node.op == "scalar":
                continue
            ctype, offset = CTYPES[operand.node.dtype], self.offset(operand.outer, row)
            offset = f"{row} * pitch{i}" if self._pitched(i) else offset
            along = any(operand.reduced) or any(operand.inner)
            if along:
                at = f" + {offset}" if offset != "0" else ""
                moved = " + first" if self.columns and any(operand.inner) else ""
                called = "x" if self._row_array(i) else "p"
                self.put(f"const {ctype}* __restrict__ {called}{i} = a{i}{at}{moved};")
            else:
                self.put(f"const {ctype} x{i} = a{i}[{offset}];")

    def _elements(self, roots: Iterable[Node], index: str) -> None:
        """Loads and expressions that the values `roots` need at element `index`."""
        wanted = list(roots)
        demanded = self.demand(wanted)
        read = {a for n in demanded if n not in self.staged for a in n.args} | set(wanted)
        self._loads(read, index)
        for node in demanded:
            called = f"v{self.number[node]}"
            if node in self.staged:
                self.put(f"const float {called} = g{self.staged[node]}[{index}];")
            else:
                self.put(f"const {CTYPES[node.dtype]} {called} = {self.spelt(node)};")

    def _loads(self, read: Iterable[Node], index: str) -> None:
        for i, operand in enumerate(self.kernel.operands):
            if operand.node not in read or operand.node.op == "scalar" or self._row_array(i):
                continue
            if any(operand.reduced) or any(operand.inner):
                at = index if not self.columns else self._column_index(i)
                source = f"m{i}[{at}{self.mask_base}]" if i in self.masks else f"p{i}[{at}]"
                self.put(f"const {CTYPES[operand.node.dtype]} x{i} = {source};")

    mask_base = ""
    """What is subtracted from an element's index to find it among the widened masks."""

    def _widen(self, begin: str, end: str) -> None:
        """Fill the buffers of `masks` for elements `begin` to `end`."""
        for i in self.masks:
            at = f"i{self.mask_base}"
            self.put(f"for (int64_t i = {begin}; i < {end}; ++i) m{i}[{at}] = p{i}[i];")

    def _column_index(self, position: int) -> str:
        operand = self.kernel.operands[position]
        along = [f"i * {operand.reduced[0]}"] if any(operand.reduced) else []
        return " + ".join([*along, *(["j"] if any(operand.inner) else [])])
