"""CUDA kernels that reduce along contiguous rows: a team of threads for each row."""

from __future__ import annotations

from agent.tuner.cuda.sums import CudaSums
from agent.tuner.cuda.values import CudaValues
from agent.tuner.planning.expression import CTYPES
from agent.tuner.planning.fused import Fused
from agent.tuner.planning.schedule import Schedule
from agent.tuner.tracing.graph import Kind, Node

MOST_HELD = 256
"""Staged values a thread: no more registers exist, and what spills had better be read again."""


class CudaRows(CudaValues):
    """Staged values lie in registers (`regs`) or shared memory, where each thread left its own.

    Every thread of a row walks the same elements in every pass, so staging needs no barrier.
    """

    def __init__(self, kernel: Fused, schedule: Schedule) -> None:
        super().__init__(kernel, schedule)
        team = self.choice("team") or "all"
        self.team = self.threads if team == "all" else min(int(team), self.threads)
        self.teams = self.threads // self.team
        self.online = online_pairs(kernel) if self.choice("passes") == "fewest" else {}
        late = set(self.online.values())
        levels = range(1, kernel.passes + 1)
        self.passes = [
            [n for n in kernel.reductions if kernel.level[n] == level and n not in late]
            for level in levels
        ]
        self.stage = self.choice("stage") or "none"
        self.stored = self._plan() if self.stage != "none" else []
        """By pass, the values that it stages."""
        held = -(-kernel.row // (self.team * self.vector)) * self.vector * len(self.staging)
        if self.stage == "regs" and held > MOST_HELD:
            self.stage, self.stored = "none", []

    def _plan(self) -> list[list[Node]]:
        """Values that no reduction precedes and that more than one pass needs, as large as can be.

        Each is staged by the first pass that needs it.
        """
        roots = [[n.args[0] for n in found] for found in self.passes]
        roots.append([o.node for o in self.kernel.outputs if o.full])
        needed: list[set[Node]] = []
        for wanted in roots:
            seen: set[Node] = set()
            stack = list(wanted)
            while stack:
                node = stack.pop()
                if node not in self.kernel.full or node in seen:
                    continue
                if node.kind in (Kind.CONST, Kind.IOTA):
                    continue
                if self.kernel.level.get(node, 0) == 0 and node.dtype == "float32":
                    seen.add(node)
                else:
                    stack.extend(node.args)
            needed.append(seen)
        plan: list[list[Node]] = []
        known: set[Node] = set()
        for at, here in enumerate(needed):
            later = set[Node]().union(*needed[at + 1 :])
            fresh = [n for n in [*self.kernel.body, *self._leaves()] if n in (here & later) - known]
            known.update(fresh)
            plan.append(fresh)
        return plan

    def _leaves(self) -> list[Node]:
        return [o.node for o in self.kernel.operands if o.node.op != "scalar"]

    @property
    def staging(self) -> list[Node]:
        """All staged values: their numbers are their places here."""
        return [n for found in self.stored for n in found]

    @property
    def whole(self) -> bool:
        """Whether the teams of all blocks have a row each."""
        return self.kernel.rows % self.teams == 0

    def text(self) -> str:
        """The whole translation of the kernel."""
        name, kernel = self.kernel.name, self.kernel
        self.open_device(f"{name}_kernel")
        self.put(f"constexpr int ROW = {kernel.row}, TEAM = {self.team};")
        self._row()
        self._buffers()
        self._row_pointers()
        self.put(*(self.define(n) for n in self.row_values(0)))
        for level, found in enumerate(self.passes, start=1):
            if found:
                self._pass(level, found)
            self.put(*(self.define(n) for n in self.row_values(level)))
        self._results()
        self.put("}", "")
        self.open_launcher(f"{name}_launch")
        shared = "0"
        if self.stage == "smem" and self.staging:
            size = 4 * kernel.row * self.teams * len(self.staging)
            shared = str(size)
            attribute = "cudaFuncAttributeMaxDynamicSharedMemorySize"
            call = f"cudaFuncSetAttribute({name}_kernel<V>, {attribute}, {size})"
            self.put(f"C10_CUDA_CHECK({call});")
        self.launch(f"{name}_kernel", str(-(-kernel.rows // self.teams)), shared)
        self.put("}", "")
        self.open_host()
        self.close_host(f"{name}_launch")
        return "\n".join(self.lines) + "\n"

    def _row(self) -> None:
        if self.teams == 1:
            self.put("const int lane = threadIdx.x;", f"const {self.index} row = blockIdx.x;")
            return
        self.put("const int lane = threadIdx.x % TEAM;")
        mine = f"({self.index})blockIdx.x * {self.teams} + threadIdx.x / TEAM"
        if self.whole:
            self.put(f"const {self.index} row = {mine};")
            return
        # All threads of a warp take part in its reductions: a team without a row repeats the last.
        self.put(f"const {self.index} mine = {mine};")
        self.put(f"const bool live = mine < {self.kernel.rows};")
        self.put(f"const {self.index} row = live ? mine : {self.kernel.rows - 1};")

    @property
    def _live(self) -> str:
        return "" if self.whole else "if (live) "

    def _buffers(self) -> None:
        staged, row = self.staging, self.kernel.row
        if not staged:
            return
        if self.stage == "regs":
            self.put("constexpr int K = (ROW / V + TEAM - 1) / TEAM;")
            self.put(*(f"float g{s}[K * V];" for s in range(len(staged))))
            return
        if self.stage == "fix":
            size = row * self.teams * len(staged)
            self.put(f"__shared__ __align__(16) float pool[{size}];")
        else:
            self.put("extern __shared__ __align__(16) unsigned char raw[];")
            self.put("float* pool = reinterpret_cast<float*>(raw);")
        mine = "" if self.teams == 1 else " + threadIdx.x / TEAM * ROW"
        for s in range(len(staged)):
            self.put(f"float* g{s} = pool + {s * row * self.teams}{mine};")

    def _row_pointers(self) -> None:
        for i, operand in enumerate(self.kernel.operands):
            if operand.node.op == "scalar":
                continue
            ctype, offset = CTYPES[operand.node.dtype], self.offset(operand.outer)
            if self.along(i):
                at = f" + {offset}" if offset != "0" else ""
                self.put(f"const {ctype}* __restrict__ p{i} = a{i}{at};")
            else:
                self.put(f"const {ctype} x{i} = a{i}[{offset}];")

    def _open_walk(self) -> None:
        """The loop over this thread's vectors of the row."""
        if self.stage == "regs" and self.staging:
            self.put("#pragma unroll (K * V <= 128 ? K : 1)")
            self.put("for (int k = 0; k < K; ++k) {")
            self.put("const int i = (lane + k * TEAM) * V;")
            self.put("if (ROW % (V * TEAM) != 0 && i >= ROW) continue;")
        else:
            self.put(f"#pragma unroll {self.choice('items')}")
            self.put("for (int i = lane * V; i < ROW; i += TEAM * V) {")

    def _pattern(self, node: Node) -> str:
        number = self.staging.index(node)
        return f"g{number}[k * V + j]" if self.stage == "regs" else f"*(g{number} + i)"

    def _pass(self, level: int, found: list[Node]) -> None:
        sums = CudaSums(self, found, self.online)
        self.put(*sums.declarations())
        self._open_walk()
        stored = self.stored[level - 1] if self.stored else []
        keep = [(n, self._pattern(n)) for n in stored]
        self.elements([*sums.roots(), *stored], sums.updates(), keep)
        self.put("}")
        self.put(*sums.join("TEAM"))
        self.staged.update(keep)

    def _results(self) -> None:
        full = []
        for i, output in enumerate(self.kernel.outputs):
            if output.full:
                full.append((i, f"o{i} + row * ROW + i"))
            else:
                live = "lane == 0" if self.whole else "lane == 0 && live"
                self.put(f"if ({live}) o{i}[row] = {self.name(output.node)};")
        if full:
            self._open_walk()
            self.outputs(full, self._live)
            self.put("}")


def online_pairs(kernel: Fused) -> dict[Node, Node]:
    """Maxima of a row with a sum of exp(x - maximum) that needs no pass of its own."""
    pairs: dict[Node, Node] = {}
    for node in kernel.reductions:
        inner = node.args[0]
        if node.op != "sum" or inner.op != "exp" or inner.args[0].op != "sub":
            continue
        x, top = inner.args[0].args
        if top.kind is Kind.REDUCE and top.op == "max" and top.args[0] is x and top not in pairs:
            pairs[top] = node
    return pairs
