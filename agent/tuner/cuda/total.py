"""CUDA kernels that reduce a whole tensor: parts by blocks, then one block over the parts.

No atomic addition: the same inputs give the same bits in every run.
"""

from __future__ import annotations

from agent.tuner.cuda.sums import OPERATIONS, CudaSums
from agent.tuner.cuda.values import CudaValues
from agent.tuner.kernel_text import START, combined
from agent.tuner.planning.expression import CTYPES
from agent.tuner.tracing.graph import Node

MOST_BLOCKS = 1024
"""More parts than this cost more to join than they bring."""


class CudaTotal(CudaValues):
    """`work` holds the values of the body that are numbers, by position, and then the parts.

    Where parts are joined is a knob: in a kernel of its own, or by the block that ends last.
    """

    def text(self) -> str:
        """The whole translation of the kernel."""
        kernel, name = self.kernel, self.kernel.name
        per = self.threads * int(self.items) * self.vector
        self.blocks = max(1, min(MOST_BLOCKS, -(-kernel.width // per)))
        self.last = self.choice("join") == "last"
        launches = []
        for level in range(1, kernel.passes + 1):
            launches.append((f"{name}_part{level}", str(self.blocks)))
            self._part(level)
            if not self.last:
                launches.append((f"{name}_join{level}", "1"))
                self.open_device(f"{name}_join{level}", ["double* work"])
                self._known(level)
                self._join(level)
                self.put("}", "")
        if any(o.full for o in kernel.outputs):
            launches.append((f"{name}_store", str(self.blocks)))
            self.open_device(f"{name}_store", ["double* work"])
            self._known(kernel.passes + 1)
            self._open_walk()
            self.store("o{i} + i")
            self.put("}", "}", "")
        self.open_launcher(["double* work"])
        for function, blocks in launches:
            self.launch(function, blocks, extra=["work"])
        self.put("}", "")
        self.host(len(kernel.body) + len(kernel.reductions) * self.blocks)
        return "\n".join(self.lines) + "\n"

    def place(self, position: int) -> str:
        """There is one row, and every operand is it."""
        return f"a{position} + i"

    def _parts(self, node: Node) -> str:
        """Where the parts of a reduction begin."""
        order = self.kernel.reductions.index(node)
        return f"work + {len(self.kernel.body) + order * self.blocks}"

    def _known(self, level: int) -> None:
        """Operands that are numbers, and the values that earlier levels have left."""
        kernel = self.kernel
        for i, operand in enumerate(kernel.operands):
            if operand.node.op != "scalar" and not operand.along:
                self.put(f"const {CTYPES[operand.node.dtype]} x{i} = a{i}[0];")
        for node in kernel.body:
            if node in kernel.full or kernel.level[node] >= level:
                continue
            if kernel.level[node] == 0:
                self.put(self.define(node))
            else:
                n = self.number[node]
                self.put(f"const {CTYPES[node.dtype]} v{n} = __ldcg(work + {n});")

    def _open_walk(self) -> None:
        step = f"({self.index})V * {self.threads * self.blocks}"
        start = f"(({self.index})blockIdx.x * {self.threads} + threadIdx.x) * V"
        self.put(f"#pragma unroll {self.items}")
        self.put(f"for ({self.index} i = {start}; i < {self.kernel.width}; i += {step}) {{")

    def _part(self, level: int) -> None:
        name = f"{self.kernel.name}_part{level}"
        if self.last:
            self.put(f"__device__ unsigned int {name}_ticket;")
        self.open_device(name, ["double* work"])
        self._known(level)
        found = self.kernel.found(level)
        sums = CudaSums(self, found, {})
        self.put(*sums.declarations())
        self._open_walk()
        self.elements(sums.roots, sums.updates())
        self.put("}")
        for node in found:
            n = self.number[node]
            call = f"team_reduce<{self.threads}, {OPERATIONS[node.op]}>(c{n})"
            self.put(f"const double d{n} = {call};")
        self.put("if (threadIdx.x == 0) {")
        self.put(*(f"({self._parts(n)})[blockIdx.x] = d{self.number[n]};" for n in found), "}")
        if self.last:
            # atomicInc wraps to 0 at the last block: ready for the next call.
            self.put("__shared__ bool last;", "if (threadIdx.x == 0) {", "__threadfence();")
            ticket = f"atomicInc(&{name}_ticket, {self.blocks - 1})"
            self.put(f"last = {ticket} == {self.blocks - 1};", "}")
            self.put("__syncthreads();", "if (!last) return;", "__threadfence();")
            self._join(level)
        self.put("}", "")

    def _join(self, level: int) -> None:
        """The results of a level and what follows from them, by one block."""
        kernel, found = self.kernel, self.kernel.found(level)
        sums = CudaSums(self, found, {})
        for node in found:
            n, kind = self.number[node], sums.kind(node.op)
            self.put(f"{kind} t{n} = {START[node.op]};")
            self.put(f"for (int b = threadIdx.x; b < {self.blocks}; b += {self.threads}) {{")
            self.put(f"const {kind} part = __ldcg({self._parts(node)} + b);")
            self.put(f"t{n} = {combined(node.op, f't{n}', 'part')};", "}")
            call = f"team_reduce<{self.threads}, {OPERATIONS[node.op]}>(t{n})"
            self.put(f"const float v{n} = (float){call};")
        ready = kernel.row_values(level)
        self.put(*(self.define(n) for n in ready))
        self.put("if (threadIdx.x == 0) {")
        self.put(*(f"work[{self.number[n]}] = v{self.number[n]};" for n in [*found, *ready]))
        for i, output in enumerate(kernel.outputs):
            if not output.full and max(kernel.level[output.node], 1) == level:
                self.put(f"o{i}[0] = {self.name(output.node)};")
        self.put("}")
