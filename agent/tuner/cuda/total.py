"""CUDA kernels that reduce a whole tensor: parts by blocks, then one block over the parts.

No atomic addition: the same inputs give the same bits in every run.
"""

from __future__ import annotations

from agent.tuner.cuda.sums import OPERATIONS, CudaSums
from agent.tuner.cuda.values import CudaValues
from agent.tuner.kernel_text import START, combined
from agent.tuner.planning.expression import CTYPES

MOST_BLOCKS = 1024
"""More parts than this cost more to join than they bring."""


class CudaTotal(CudaValues):
    """`work` holds the parts: those of all blocks, for one reduction after the other.

    Where parts are joined is a knob: in a kernel of its own, or by the block that ends last.
    """

    def text(self) -> str:
        """The whole translation of the kernel."""
        name = self.kernel.name
        per = self.threads * int(self.items) * self.vector
        self.blocks = max(1, min(MOST_BLOCKS, -(-self.kernel.width // per)))
        self.sums = CudaSums(self, self.kernel.reductions, {})
        last = self.choice("join") == "last"
        if last:
            self.put(f"__device__ unsigned int {name}_ticket;")
        self.open_device(f"{name}_part", ["double* work"])
        self._known()
        self._part()
        if last:
            self._wait_for_the_last()
        else:
            self.put("}", "")
            self.open_device(f"{name}_join", ["double* work"])
            self._known()
        self._join()
        self.put("}", "")
        self.open_launcher(["double* work"])
        self.launch(f"{name}_part", str(self.blocks), extra=["work"])
        if not last:
            self.launch(f"{name}_join", "1", extra=["work"])
        self.put("}", "")
        self.host(len(self.sums.items) * self.blocks)
        return "\n".join(self.lines) + "\n"

    def place(self, position: int) -> str:
        """There is one row, and every operand is it."""
        return f"a{position} + i"

    def _known(self) -> None:
        """What is known before the reductions: operands that are numbers, and what they give."""
        for i, operand in enumerate(self.kernel.operands):
            if operand.node.op != "scalar" and not operand.along:
                self.put(f"const {CTYPES[operand.node.dtype]} x{i} = a{i}[0];")
        self.put(*map(self.define, self.kernel.row_values(0)))

    def _reduced(self, op: str, value: str) -> str:
        return f"team_reduce<{self.threads}, {OPERATIONS[op]}>({value})"

    def _part(self) -> None:
        self.put(*self.sums.declarations())
        step = f"({self.index})V * {self.threads * self.blocks}"
        start = f"(({self.index})blockIdx.x * {self.threads} + threadIdx.x) * V"
        self.put(f"#pragma unroll {self.items}")
        self.put(f"for ({self.index} i = {start}; i < {self.kernel.width}; i += {step}) {{")
        self.elements(self.sums.roots, self.sums.updates())
        self.put("}")
        items = self.sums.items
        self.put(*(f"const double d{n} = {self._reduced(op, f'c{n}')};" for n, op, _ in items))
        self.put("if (threadIdx.x == 0) {")
        for order, (n, _, _) in enumerate(items):
            self.put(f"(work + {order * self.blocks})[blockIdx.x] = d{n};")
        self.put("}")

    def _wait_for_the_last(self) -> None:
        """All blocks but the one that ends last return."""
        # atomicInc wraps to 0 at the last block: ready for the next call.
        ticket = f"atomicInc(&{self.kernel.name}_ticket, {self.blocks - 1})"
        self.put("__shared__ bool last;", "if (threadIdx.x == 0) {", "__threadfence();")
        self.put(f"last = {ticket} == {self.blocks - 1};", "}")
        self.put("__syncthreads();", "if (!last) return;", "__threadfence();")

    def _join(self) -> None:
        """The results and what follows from them, by one block."""
        for order, (n, op, _) in enumerate(self.sums.items):
            kind = self.sums.kind(op)
            self.put(f"{kind} t{n} = {START[op]};")
            self.put(f"for (int b = threadIdx.x; b < {self.blocks}; b += {self.threads}) {{")
            self.put(f"const {kind} part = __ldcg(work + {order * self.blocks} + b);")
            self.put(f"t{n} = {combined(op, f't{n}', 'part')};", "}")
            self.put(f"const float v{n} = (float){self._reduced(op, f't{n}')};")
        self.put(*map(self.define, self.kernel.row_values(1)))
        self.put("if (threadIdx.x == 0) {")
        self.put(*(f"o{i}[0] = {self.name(n)};" for i, n in enumerate(self.kernel.outputs)), "}")
