"""CUDA kernels that reduce along contiguous rows: a team of threads for each row."""

from __future__ import annotations

from agent.tuner.cuda.sums import CudaSums
from agent.tuner.cuda.values import CudaValues
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
        team = self.choice("team")
        self.team = self.threads if team == "all" else min(int(team), self.threads)
        self.teams = self.threads // self.team
        self.whole = kernel.rows % self.teams == 0
        """Whether the teams of all blocks have a row each."""
        self.online = online_pairs(kernel) if self.choice("passes") == "fewest" else {}
        late = set(self.online.values())
        levels = range(1, kernel.passes + 1)
        self.passes = [[n for n in kernel.found(level) if n not in late] for level in levels]
        self.stage = self.choice("stage")
        self.stored = self._plan() if self.stage != "none" else [[] for _ in levels]
        """By pass, the values that it stages."""
        self.staging = [n for found in self.stored for n in found]
        """All staged values: their numbers are their places here."""
        held = -(-kernel.width // (self.team * self.vector)) * self.vector * len(self.staging)
        if self.stage == "regs" and held > MOST_HELD:
            self.stored, self.staging = [[] for _ in levels], []

    def _plan(self) -> list[list[Node]]:
        """Values that no reduction precedes and that more than one pass needs, as large as can be.

        Each is staged by the first pass that needs it.
        """
        roots = [[n.args[0] for n in found] for found in self.passes]
        roots.append([n for _, n in self.kernel.stored])
        needed: list[set[Node]] = []
        for wanted in roots:
            seen: set[Node] = set()
            stack = list(wanted)
            while stack:
                node = stack.pop()
                if node not in self.kernel.full or node in seen or node.kind is Kind.CONST:
                    continue
                if self.kernel.level.get(node, 0) == 0 and node.dtype == "float32":
                    seen.add(node)
                else:
                    stack.extend(node.args)
            needed.append(seen)
        leaves = [o.node for o in self.kernel.operands if o.node.op != "scalar"]
        plan: list[list[Node]] = []
        known: set[Node] = set()
        for at, here in enumerate(needed):
            later = set[Node]().union(*needed[at + 1 :])
            fresh = [n for n in [*self.kernel.body, *leaves] if n in (here & later) - known]
            known.update(fresh)
            plan.append(fresh)
        return plan

    def text(self) -> str:
        """The whole translation of the kernel."""
        name, kernel = self.kernel.name, self.kernel
        self.open_device(f"{name}_kernel")
        self.put(f"constexpr int ROW = {kernel.width}, TEAM = {self.team};")
        self._row()
        self._buffers()
        self.point_at_row()
        self.put(*map(self.define, kernel.row_values(0)))
        for level, found in enumerate(self.passes, start=1):
            if found:
                self._pass(found, self.stored[level - 1])
            self.put(*map(self.define, kernel.row_values(level)))
        self._results()
        self.put("}", "")
        self.open_launcher()
        shared = 0
        if self.stage == "smem" and self.staging:
            shared = 4 * kernel.width * self.teams * len(self.staging)
            attribute = "cudaFuncAttributeMaxDynamicSharedMemorySize"
            call = f"cudaFuncSetAttribute({name}_kernel<V>, {attribute}, {shared})"
            self.put(f"C10_CUDA_CHECK({call});")
        self.launch(f"{name}_kernel", str(-(-kernel.rows // self.teams)), shared)
        self.put("}", "")
        self.host()
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

    def _buffers(self) -> None:
        staged, size = len(self.staging), self.kernel.width * self.teams
        if not staged:
            return
        if self.stage == "regs":
            self.put("constexpr int K = (ROW / V + TEAM - 1) / TEAM;")
            self.put(*(f"float g{s}[K * V];" for s in range(staged)))
            return
        if self.stage == "fix":
            self.put(f"__shared__ __align__(16) float pool[{size * staged}];")
        else:
            self.put("extern __shared__ __align__(16) unsigned char raw[];")
            self.put("float* pool = reinterpret_cast<float*>(raw);")
        mine = "" if self.teams == 1 else " + threadIdx.x / TEAM * ROW"
        self.put(*(f"float* g{s} = pool + {s * size}{mine};" for s in range(staged)))

    def _open_walk(self) -> None:
        """The loop over this thread's vectors of the row."""
        if self.stage == "regs" and self.staging:
            self.put("#pragma unroll (K * V <= 128 ? K : 1)")
            self.put("for (int k = 0; k < K; ++k) {")
            self.put("const int i = (lane + k * TEAM) * V;")
            self.put("if (ROW % (V * TEAM) != 0 && i >= ROW) continue;")
        else:
            self.put(f"#pragma unroll {self.items}")
            self.put("for (int i = lane * V; i < ROW; i += TEAM * V) {")

    def _pattern(self, node: Node) -> str:
        number = self.staging.index(node)
        return f"g{number}[k * V + j]" if self.stage == "regs" else f"*(g{number} + i)"

    def _pass(self, found: list[Node], stored: list[Node]) -> None:
        sums = CudaSums(self, found, self.online)
        self.put(*sums.declarations())
        self._open_walk()
        keep = [(n, self._pattern(n)) for n in stored]
        self.elements([*sums.roots, *stored], sums.updates(), keep)
        self.put("}", *sums.join())
        self.staged.update(keep)

    def _results(self) -> None:
        live = "" if self.whole else " && live"
        for i, node in enumerate(self.kernel.outputs):
            if node not in self.kernel.full:
                self.put(f"if (lane == 0{live}) o{i}[row] = {self.name(node)};")
        if self.kernel.stored:
            self._open_walk()
            self.store("o{i} + row * ROW + i", "" if self.whole else "if (live) ")
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
