"""Loads, stores and launches of a CUDA kernel: what its nests are made of.

Kernels are templates over V, the elements of a vector access.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from agent.tuner.kernel_text import KernelText, declaration
from agent.tuner.planning.expression import CTYPES
from agent.tuner.planning.fused import Fused
from agent.tuner.planning.schedule import Schedule
from agent.tuner.tracing.graph import Node

FAR = 2**31 - 2**26
"""Elements from which indices are 64 bits wide; the rest is room for threads past the end."""

CAREFUL = {
    "acc": "fp64", "grid": "full", "team": "all", "stage": "none", "passes": "exact",
    "join": "kernel",
}  # fmt: skip
"""For kernels of a nest that the schedule's family doesn't speak of."""


class CudaValues(KernelText):
    """One fused kernel: device functions and the host function that launches them."""

    WRONG = (
        "TORCH_CHECK(t{i}.is_cuda() && t{i}.numel() == {n}, "
        '"{name}: operand {i} is no CUDA tensor of {n} elements");'
    )

    def __init__(self, kernel: Fused, schedule: Schedule) -> None:
        super().__init__(kernel, schedule)
        self.staged: dict[Node, str] = {}
        """Values that an earlier pass has left behind, and where: a pattern over `i`."""
        self.threads = int(self.choice("threads"))
        self.items = self.choice("items")
        self.space = max(n.numel for n in (*(o.node for o in kernel.operands), *kernel.outputs))
        self.index = "int" if self.space < FAR else "int64_t"
        self.vector = gcd(int(self.choice("vec")), kernel.width)

    def choice(self, knob: str) -> str:
        """The schedule's choice, or a careful one where it has no such knob."""
        return self.schedule.choices.get(knob) or CAREFUL[knob]

    # Host -----------------------------------------------------------------------------------------

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
        return given + [f"{CTYPES[n.dtype]}* __restrict__ o{i}" for i, n in outputs]

    @property
    def given(self) -> list[str]:
        """The arguments that go with `parameters`."""
        return [p.split()[-1] for p in self.parameters]

    def open_device(self, name: str, extra: Sequence[str] = ()) -> None:
        """Begin a device function."""
        bounds = f"__launch_bounds__({self.threads}, {self.choice('min')})"
        words = ", ".join([*self.parameters, *extra])
        self.put("template <int V>", f"__global__ void {bounds} {name}({words}) {{")

    def open_launcher(self, extra: Sequence[str] = ()) -> None:
        """Begin the host template that knows V."""
        words = [p.replace(" __restrict__", "") for p in self.parameters]
        words += [*extra, "cudaStream_t stream"]
        self.put("template <int V>")
        self.put(f"static void {self.kernel.name}_launch({', '.join(words)}) {{")

    def launch(self, name: str, blocks: str, shared: int = 0, extra: Sequence[str] = ()) -> None:
        """One launch."""
        sizes = f"(unsigned int)({blocks}), {self.threads}, {shared}, stream"
        self.put(f"{name}<V><<<{sizes}>>>({', '.join([*self.given, *extra])});")

    def host(self, work: int = 0) -> None:
        """The host function: checks, results, launch; `work` doubles of scratch memory.

        Vectors are used where all pointers allow it, else single elements.
        """
        self.put(f"{declaration(self.kernel)} {{")
        self.take_arguments()
        self.put(f"const c10::cuda::CUDAGuard guard(t{self.first}.device());")
        self.make_results()
        self.put("const cudaStream_t stream = at::cuda::getCurrentCUDAStream();")
        if work:
            options = f"t{self.first}.options().dtype(torch::kFloat64)"
            self.put(f"auto work = torch::empty({{{work}}}, {options});")
        scratch = ["work.data_ptr<double>()"] if work else []
        arguments = ", ".join([*self.given, *scratch, "stream"])
        launcher = f"{self.kernel.name}_launch"
        if self.vector > 1:
            walked = [f"a{i}" for i, o in enumerate(self.kernel.operands) if o.along]
            walked += [f"o{i}" for i in range(len(self.kernel.outputs))]
            checks = " && ".join(f"aligned({w}, {self.vector})" for w in walked)
            self.put(f"if ({checks}) {{")
            self.put(f"{launcher}<{self.vector}>({arguments});", "} else {")
            self.put(f"{launcher}<1>({arguments});", "}")
        else:
            self.put(f"{launcher}<1>({arguments});")
        self.put("C10_CUDA_KERNEL_LAUNCH_CHECK();")
        self.give_results()
        self.put("}")

    # Elements -------------------------------------------------------------------------------------

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
        read = self.read(demanded, roots)
        inside: list[str] = []
        for i, operand in enumerate(self.kernel.operands):
            node = operand.node
            if node in read and operand.along:
                load = f"load<V, {self._hint(node)}>({self.place(i)})"
                self._fetch(f"x{i}", node, self.staged.get(node), load, inside)
        for node in demanded:
            if node in self.staged:
                self._fetch(f"v{self.number[node]}", node, self.staged[node], "", inside)
            else:
                inside.append(self.define(node))
        packs = [(n, t) for n, t in keep if t.startswith("*")]
        self.put(*(f"Pack<float, V> k{self.name(n)};" for n, _ in packs))
        self.put("#pragma unroll", "for (int j = 0; j < V; ++j) {")
        self.put(*inside, *each)
        for node, target in keep:
            where = f"k{self.name(node)}.v[j]" if target.startswith("*") else target
            self.put(f"{where} = {self.name(node)};")
        self.put("}")
        self.put(*(f"store<PLAIN>({t[1:]}, k{self.name(n)});" for n, t in packs))

    def _hint(self, node: Node) -> str:
        """How that operand is loaded. What is read again is never streamed."""
        once = "STREAM" if node.numel == self.space else "PLAIN"
        return {"plain": "PLAIN", "ldg": "LDG", "once": once}[self.choice("loads")]

    def _fetch(
        self, called: str, node: Node, stage: str | None, load: str, into: list[str]
    ) -> None:
        if stage is not None and not stage.startswith("*"):
            into.append(f"const float {called} = {stage};")
            return
        source = load if stage is None else f"load<V, PLAIN>({stage[1:]})"
        self.put(f"const auto w{called} = {source};")
        into.append(f"const {CTYPES[node.dtype]} {called} = w{called}.v[j];")

    def place(self, position: int) -> str:
        """The address of the first of V elements of an operand along the vector loop."""
        return f"p{position} + i"

    def store(self, address: str, guard: str = "") -> None:
        """Compute full outputs and store them; `address` is a pattern over the number of each."""
        full = self.kernel.stored
        self.put(*(f"Pack<{CTYPES[node.dtype]}, V> y{i};" for i, node in full))
        self.elements([n for _, n in full], [f"y{i}.v[j] = {self.name(n)};" for i, n in full])
        hint = "STREAM" if self.choice("stores") == "stream" else "PLAIN"
        self.put(*(f"{guard}store<{hint}>({address.format(i=i)}, y{i});" for i, _ in full))
