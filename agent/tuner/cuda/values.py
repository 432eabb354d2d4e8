"""Names, loads and expressions of a CUDA kernel: what its nests are made of.

Values are called `v<n>` by their position in the body, operands `a<n>` (pointer), `p<n>` (its row)
and `x<n>` (value), outputs `o<n>`. Kernels are templates over V, the elements of a vector access.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from agent.tuner.kernel_text import TORCH_TYPES, KernelText, declaration
from agent.tuner.planning.expression import CTYPES
from agent.tuner.planning.fused import Fused, Nest
from agent.tuner.planning.schedule import Schedule
from agent.tuner.tracing.graph import Kind, Node

FAR = 2**31 - 2**26
"""Elements from which indices are 64 bits wide; the rest is room for threads past the end."""

WANTED = {"acc": "fp64", "vec": "1", "threads": "256", "items": "1", "grid": "full", "min": "1"}
"""For kernels of a nest that the schedule's family doesn't speak of."""


class CudaValues(KernelText):
    """One fused kernel: device functions and the host function that launches them."""

    def __init__(self, kernel: Fused, schedule: Schedule) -> None:
        super().__init__(kernel, schedule)
        self.staged: dict[Node, str] = {}
        """Values that an earlier pass has left behind, and where: a pattern over `i`."""
        self.threads = int(self.choice("threads"))
        self.space = max(
            *(o.node.numel for o in kernel.operands), *(o.node.numel for o in kernel.outputs)
        )
        self.index = "int" if self.space < FAR else "int64_t"
        contiguous = kernel.row if kernel.nest in (Nest.ROWS, Nest.TOTAL) else kernel.width
        self.vector = gcd(int(self.choice("vec")), max(contiguous, 1))

    def choice(self, knob: str) -> str:
        """The schedule's choice, or a careful one where it has no such knob."""
        return self.schedule.choices.get(knob, WANTED.get(knob, ""))

    # Host ----------------------------------------------------------------------------------------

    @property
    def parameters(self) -> list[str]:
        """Of every device function."""
        given = [
            f"float s{i}"
            if o.node.op == "scalar"
            else f"const {CTYPES[o.node.dtype]}* __restrict__ a{i}"
            for i, o in enumerate(self.kernel.operands)
        ]
        outputs = enumerate(self.kernel.outputs)
        return given + [f"{CTYPES[o.node.dtype]}* __restrict__ o{i}" for i, o in outputs]

    @property
    def given(self) -> list[str]:
        """The arguments that go with `parameters`."""
        return [p.split()[-1] for p in self.parameters]

    def bounds(self) -> str:
        """What the compiler knows about the block's size."""
        return f"__launch_bounds__({self.threads}, {self.choice('min')})"

    def open_device(self, name: str, extra: Sequence[str] = ()) -> None:
        """Begin a device function."""
        self.put("template <int V>")
        words = ", ".join([*self.parameters, *extra])
        self.put(f"__global__ void {self.bounds()} {name}({words}) {{")

    def open_host(self) -> None:
        """Begin the host function: checks, results, stream."""
        kernel = self.kernel
        self.put(f"{declaration(kernel)} {{")
        for i, operand in enumerate(kernel.operands):
            node, ctype = operand.node, CTYPES[operand.node.dtype]
            if node.op == "scalar":
                self.put(f"const float s{i} = (float)a{i};")
                continue
            message = f'"{kernel.name}: operand {i} is no CUDA tensor of {node.numel} elements"'
            self.put(f"TORCH_CHECK(t{i}.is_cuda() && t{i}.numel() == {node.numel}, {message});")
            self.put(f"t{i} = t{i}.contiguous();")
            self.put(f"const {ctype}* a{i} = t{i}.data_ptr<{ctype}>();")
        first = next(i for i, o in enumerate(kernel.operands) if o.node.op != "scalar")
        self.put(f"const c10::cuda::CUDAGuard guard(t{first}.device());")
        for i, output in enumerate(kernel.outputs):
            node, ctype = output.node, CTYPES[output.node.dtype]
            sizes = ", ".join(map(str, node.shape))
            options = f"t{first}.options().dtype({TORCH_TYPES[node.dtype]})"
            self.put(f"auto r{i} = torch::empty({{{sizes}}}, {options});")
            self.put(f"{ctype}* o{i} = r{i}.data_ptr<{ctype}>();")
        self.put("const cudaStream_t stream = at::cuda::getCurrentCUDAStream();")

    def close_host(self, launcher: str, extra: Sequence[str] = ()) -> None:
        """Launch with vectors where all pointers allow it, else element by element; return."""
        arguments = ", ".join([*self.given, *extra, "stream"])
        if self.vector > 1:
            walked = [i for i, o in enumerate(self.kernel.operands) if self.along(i)]
            checks = [f"aligned(a{i}, {self.vector})" for i in walked]
            checks += [f"aligned(o{i}, {self.vector})" for i in range(len(self.kernel.outputs))]
            self.put(f"if ({' && '.join(checks)}) {{")
            self.put(f"{launcher}<{self.vector}>({arguments});", "} else {")
            self.put(f"{launcher}<1>({arguments});", "}")
        else:
            self.put(f"{launcher}<1>({arguments});")
        self.put("C10_CUDA_KERNEL_LAUNCH_CHECK();")
        names = [f"r{i}" for i in range(len(self.kernel.outputs))]
        self.put(f"return {names[0] if len(names) == 1 else '{' + ', '.join(names) + '}'};", "}")

    def open_launcher(self, name: str, extra: Sequence[str] = ()) -> None:
        """Begin the host template that knows V."""
        self.put("template <int V>")
        words = [p.replace(" __restrict__", "") for p in self.parameters]
        self.put(f"static void {name}({', '.join([*words, *extra, 'cudaStream_t stream'])}) {{")

    def launch(self, name: str, blocks: str, shared: str = "0", extra: Sequence[str] = ()) -> None:
        """One launch."""
        sizes = f"(unsigned int)({blocks}), {self.threads}, {shared}, stream"
        self.put(f"{name}<V><<<{sizes}>>>({', '.join([*self.given, *extra])});")

    # Values --------------------------------------------------------------------------------------

    def along(self, position: int) -> bool:
        """Whether that operand varies along the vector loop."""
        operand = self.kernel.operands[position]
        if operand.node.op == "scalar":
            return False
        return any(operand.inner) if self.columns else any(operand.reduced + operand.inner)

    def counted(self, tag: str) -> str:
        """The index along the reduced (`r`) or inner (`i`) dimension, as 64 bits."""
        index = "i" if tag == "r" and self.columns else "(c + j)" if self.columns else "(i + j)"
        return f"(int64_t){index}"

    def hint(self, position: int) -> str:
        """How that operand is loaded. What is read again is never streamed."""
        loads = self.choice("loads")
        once = self.kernel.operands[position].node.numel == self.space
        return {"ldg": "LDG", "once": "STREAM" if once else "PLAIN"}.get(loads, "PLAIN")

    def define(self, node: Node) -> str:
        """A value as a constant."""
        return f"const {CTYPES[node.dtype]} v{self.number[node]} = {self.spelt(node)};"

    def row_values(self, level: int) -> list[Node]:
        """Values a row (not an element) that are known after `level` passes."""
        kernel = self.kernel
        return [
            n
            for n in kernel.body
            if n.kind is Kind.POINTWISE and n not in kernel.full and kernel.level[n] == level
        ]

    # Elements ------------------------------------------------------------------------------------

    def elements(
        self,
        roots: Sequence[Node],
        each: Sequence[str],
        keep: Sequence[tuple[Node, str]] = (),
    ) -> None:
        """Loads and the loop over V elements that computes `roots` and then does `each`.

        `keep` are values to be staged: value and target pattern.
        """
        demanded = self.demand(roots)
        read = {a for n in demanded if n not in self.staged for a in n.args} | set(roots)
        inside: list[str] = []
        for i, operand in enumerate(self.kernel.operands):
            node = operand.node
            if node not in read:
                continue
            if not self.along(i):
                self.put(*self.scattered(i))
                continue
            source = self.staged.get(node)
            self._fetch(f"x{i}", node, source, f"load<V, {self.hint(i)}>({self.place(i)})", inside)
        for node in demanded:
            if node in self.staged:
                self._fetch(f"v{self.number[node]}", node, self.staged[node], "", inside)
            else:
                inside.append(self.define(node))
        packs = [(n, t) for n, t in keep if t.startswith("*")]
        self.put(*(f"Pack<float, V> k{self.tag(n)};" for n, _ in packs))
        self.put("#pragma unroll", "for (int j = 0; j < V; ++j) {")
        self.put(*inside, *each)
        for node, target in keep:
            where = f"k{self.tag(node)}.v[j]" if target.startswith("*") else target
            self.put(f"{where} = {self.name(node)};")
        self.put("}")
        self.put(*(f"store<PLAIN>({t[1:]}, k{self.tag(n)});" for n, t in packs))

    def _fetch(
        self, called: str, node: Node, stage: str | None, load: str, into: list[str]
    ) -> None:
        if stage is not None and not stage.startswith("*"):
            into.append(f"const float {called} = {stage};")
            return
        source = load if stage is None else f"load<V, PLAIN>({stage[1:]})"
        self.put(f"const auto w{called} = {source};")
        into.append(f"const {CTYPES[node.dtype]} {called} = w{called}.v[j];")

    def tag(self, node: Node) -> str:
        """Tells values apart, operands from the body."""
        return f"v{self.number[node]}" if node in self.number else f"x{self.kernel.operand(node)}"

    def place(self, position: int) -> str:
        """The address of the first of V elements of an operand along the vector loop."""
        return f"p{position} + i"

    def scattered(self, position: int) -> list[str]:
        """Loads of an operand with one value for all V elements, where it isn't known already."""
        return []

    def outputs(self, targets: Sequence[tuple[int, str]], guard: str = "") -> None:
        """Compute full outputs and store them: number and address of each."""
        nodes = [self.kernel.outputs[i].node for i, _ in targets]
        for (i, _), node in zip(targets, nodes, strict=True):
            self.put(f"Pack<{CTYPES[node.dtype]}, V> y{i};")
        pairs = zip(targets, nodes, strict=True)
        self.elements(nodes, [f"y{i}.v[j] = {self.name(n)};" for (i, _), n in pairs])
        hint = "STREAM" if self.choice("stores") == "stream" else "PLAIN"
        self.put(*(f"{guard}store<{hint}>({address}, y{i});" for i, address in targets))
