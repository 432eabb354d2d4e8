"""CUDA kernels without reductions: vectors of neighbouring elements, spread over threads."""

from __future__ import annotations

from math import prod

from agent.tuner.cuda.values import CudaValues
from agent.tuner.planning.expression import CTYPES
from agent.tuner.planning.fused import Operand

SM_BLOCKS = 16
"""`grid=waves`: blocks an SM, at most; each thread then walks on."""


class CudaMap(CudaValues):
    """`e` is an element's place in the whole, `row` its contiguous run, `i` its place in that."""

    def text(self) -> str:
        """The whole translation of the kernel."""
        name, size = self.kernel.name, self.kernel.rows * self.kernel.width
        per = self.threads * int(self.items)
        waves = self.choice("grid") == "waves"
        self.open_device(f"{name}_kernel")
        self.put(f"constexpr {self.index} PACKS = {size} / V;")
        if waves:
            self.put(f"const {self.index} step = ({self.index})gridDim.x * {self.threads};")
            start = f"({self.index})blockIdx.x * {self.threads} + threadIdx.x"
            self.put(f"#pragma unroll {self.items}")
            self.put(f"for ({self.index} pack = {start}; pack < PACKS; pack += step) {{")
        else:
            start = f"({self.index})blockIdx.x * {per} + threadIdx.x"
            self.put(f"const {self.index} first = {start};")
            self.put("#pragma unroll")
            self.put(f"for (int item = 0; item < {self.items}; ++item) {{")
            self.put(f"const {self.index} pack = first + item * {self.threads};")
            self.put(f"if (PACKS % {per} != 0 && pack >= PACKS) continue;")
        self._pack()
        self.put("}", "}", "")
        self.open_launcher()
        self.put(f"const int64_t blocks = ({size} / V + {per - 1}) / {per};")
        if waves:
            most = "at::cuda::getCurrentDeviceProperties()->multiProcessorCount"
            self.put(f"const int64_t most = (int64_t){most} * {SM_BLOCKS};")
        self.launch(f"{name}_kernel", "blocks < most ? blocks : most" if waves else "blocks")
        self.put("}", "")
        self.host()
        return "\n".join(self.lines) + "\n"

    def _pack(self) -> None:
        kernel = self.kernel
        operands = [(i, o) for i, o in enumerate(kernel.operands) if o.node.op != "scalar"]
        self.put(f"const {self.index} e = pack * V;")
        inside = any(o.along and not self._flat(o) for _, o in operands)
        scattered = any(not o.along and any(o.outer) for _, o in operands)
        if kernel.outer and (inside or scattered):
            self.put(f"const {self.index} row = e / {kernel.width};")
        if inside:
            at = f"e - row * {kernel.width}" if kernel.outer else "e"
            self.put(f"const {self.index} i = {at};")
        for position, operand in operands:
            if self._flat(operand):
                continue
            ctype, offset = CTYPES[operand.node.dtype], self.offset(operand.outer)
            if operand.along:
                self.put(f"const {ctype}* p{position} = a{position} + {offset} + i;")
            else:
                self.put(f"const {ctype} x{position} = a{position}[{offset}];")
        self.store("o{i} + e")

    def _flat(self, operand: Operand) -> bool:
        """Walked as the space itself is."""
        sizes, width = self.kernel.outer, self.kernel.width
        natural = tuple(prod(sizes[d + 1 :]) * width for d in range(len(sizes)))
        return operand.along and operand.outer == natural

    def place(self, position: int) -> str:
        """Flat operands need neither row nor place in it."""
        flat = self._flat(self.kernel.operands[position])
        return f"a{position} + e" if flat else f"p{position}"
