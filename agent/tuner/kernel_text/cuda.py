"""Fused kernels as CUDA: a team of threads for each row, or for each piece of a long one."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from agent.tuner.kernel_text.maths import prelude
from agent.tuner.kernel_text.text import CTYPES, KernelText, Placed, declaration, loading
from agent.tuner.planning.fused import Fused
from agent.tuner.planning.schedule import Schedule
from agent.tuner.tracing.graph import Node

FAR = 2**31 - 2**26
"""Elements from which indices are 64 bits wide; the rest is room for threads past the end."""
MOST_HELD = 256
"""Staged values a thread: no more registers exist, and what spills had better be read again."""

_HEAD = """\
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <cmath>
#include <cstdint>
#include <vector>

template <typename T, int V>
struct alignas(sizeof(T) * V < 16 ? sizeof(T) * V : 16) Pack { T v[V]; };
template <int V, typename T>
__device__ __forceinline__ Pack<T, V> load(const T* from) {
  return *reinterpret_cast<const Pack<T, V>*>(from);
}
template <int V, typename T>
__device__ __forceinline__ void store(T* to, const Pack<T, V>& pack) {
  *reinterpret_cast<Pack<T, V>*>(to) = pack;
}
"""

_REDUCE = """\
struct Sum { template <class T> static __device__ T of(T a, T b) { return a + b; } };
struct Max { template <class T> static __device__ T of(T a, T b) { return b > a ? b : a; } };
struct Min { template <class T> static __device__ T of(T a, T b) { return b < a ? b : a; } };

// Every thread of the team gets the result, the same bits in every run.
template <int TEAM, class Op, class T>
__device__ __forceinline__ T team_reduce(T value) {
#pragma unroll
  for (int d = (TEAM < 32 ? TEAM : 32) / 2; d > 0; d /= 2)
    value = Op::of(value, __shfl_xor_sync(0xffffffffu, value, d));
  if constexpr (TEAM > 32) {
    __shared__ T parts[TEAM / 32];
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = parts[0];
#pragma unroll
    for (int w = 1; w < TEAM / 32; ++w) value = Op::of(value, parts[w]);
  }
  return value;
}
"""


class CudaKernel(KernelText):
    """One device function and the host function that launches it.

    A thread has vectors of V neighbouring elements, and the same ones in every pass: staging needs
    no barrier. A thread adds up what it sees in the type that the schedule says; threads are joined
    by a tree in the same type, so a row's sum has the same bits in every run.
    """

    # Vectors need pointers to multiples of 16 bytes, which a slice may not be.
    CHECK = (
        "TORCH_CHECK(t{i}.is_cuda() && t{i}.numel() == {n}, "
        '"{name}: operand {i} is no CUDA tensor of {n} elements");\n'
        "t{i} = t{i}.contiguous();\n"
        "if (reinterpret_cast<uintptr_t>(t{i}.data_ptr()) % 16 != 0) t{i} = t{i}.clone();"
    )
    JOINED = "team_reduce<TEAM, {op}>({total})"
    staged_at = "g{g}[k * V + j]"
    stored_at = "y{i}.v[j]"

    def __init__(self, kernel: Fused, schedule: Schedule) -> None:
        super().__init__(kernel, schedule)
        self.threads, self.items = schedule.number("threads"), schedule.number("items")
        self.vector = gcd(schedule.number("vec"), kernel.width)
        sizes = [n.numel for n in (*(o.node for o in kernel.operands), *kernel.outputs)]
        self.index = "int" if max(sizes) < FAR else "int64_t"
        most = self.vector * self.items
        self.pieces = 1 if kernel.reductions else -(-kernel.width // (self.threads * most))
        if kernel.reductions:
            team = schedule["team"]
            self.team = self.threads if team == "all" else int(team)
        else:
            enough = -(-kernel.width // most)
            self.team = min(self.threads, 1 << (enough - 1).bit_length())
        self.teams = self.threads // self.team
        self.whole = kernel.rows % self.teams == 0
        """Whether the teams of all blocks have a row each."""
        self.guard = f"if (lane == 0{'' if self.whole else ' && live'}) "
        held = -(-kernel.width // (self.team * self.vector)) * self.vector * len(self.buffers)
        if held > MOST_HELD:
            self.kept, self.buffers = {}, []

    def text(self) -> str:
        kernel = self.kernel
        given = [
            f"const {CTYPES[o.node.dtype]}* __restrict__ a{i}"
            for i, o in enumerate(kernel.operands)
        ]
        given += [f"{CTYPES[n.dtype]}* __restrict__ o{i}" for i, n in enumerate(kernel.outputs)]
        bounds = f"__launch_bounds__({self.threads}, 1)"
        self.put(f"__global__ void {bounds} {kernel.name}_kernel({', '.join(given)}) {{")
        self.put(f"constexpr int V = {self.vector}, TEAM = {self.team};")
        self.put(f"constexpr {self.index} ROW = {kernel.width};")
        self._open_row()
        if self.buffers:
            self.put("constexpr int K = (ROW / V + TEAM - 1) / TEAM;")
            self.put(*(f"float g{g}[K * V];" for g in range(len(self.buffers))))
        self.row()
        self.put("}", "", f"{declaration(kernel)} {{")
        self.take_arguments()
        self.put("const c10::cuda::CUDAGuard guard(t0.device());")
        self.make_results()
        self.put("const cudaStream_t stream = at::cuda::getCurrentCUDAStream();")
        blocks = -(-kernel.rows // self.teams) * self.pieces
        arguments = ", ".join(words.split()[-1] for words in given)
        self.put(f"{kernel.name}_kernel<<<{blocks}, {self.threads}, 0, stream>>>({arguments});")
        self.put("C10_CUDA_KERNEL_LAUNCH_CHECK();")
        self.give_results()
        self.put("}")
        return "\n".join(self.lines) + "\n"

    def _open_row(self) -> None:
        self.begin, self.end = "lane * V", "ROW"
        if self.teams == 1:
            self.put("const int lane = threadIdx.x;")
            block = f"blockIdx.x / {self.pieces}" if self.pieces > 1 else "blockIdx.x"
            self.put(f"const {self.index} row = {block};")
            if self.pieces > 1:
                piece = self.threads * self.vector * self.items
                place = f"({self.index})(blockIdx.x % {self.pieces}) * {piece}"
                self.put(f"const {self.index} begin = {place};")
                self.put(f"const {self.index} end = begin + {piece} < ROW ? begin + {piece} : ROW;")
                self.begin, self.end = "begin + lane * V", "end"
            return
        self.put("const int lane = threadIdx.x % TEAM;")
        mine = f"({self.index})blockIdx.x * {self.teams} + threadIdx.x / TEAM"
        # All threads of a warp take part in its reductions: a team without a row repeats the last.
        self.put(f"const {self.index} mine = {mine};")
        self.put(f"const bool live = mine < {self.kernel.rows};")
        self.put(f"const {self.index} row = live ? mine : {self.kernel.rows - 1};")

    def worth_staging(self, node: Node) -> bool:
        return self.kernel.level.get(node, 0) == 0

    def open_walk(
        self, loads: Sequence[Placed], reductions: Sequence[Node], stored: Sequence[Placed]
    ) -> None:
        if self.buffers:
            self.put("#pragma unroll (K * V <= 128 ? K : 1)")
            self.put("for (int k = 0; k < K; ++k) {", "const int i = (lane + k * TEAM) * V;")
            self.put("if (ROW % (V * TEAM) != 0 && i >= ROW) continue;")
        else:
            self.put(f"#pragma unroll {self.items}")
            walk = f"{self.index} i = {self.begin}; i < {self.end}; i += TEAM * V"
            self.put(f"for ({walk}) {{")
        self.put(*(f"Pack<{CTYPES[n.dtype]}, V> y{i};" for i, n in stored))
        self.put(*(f"const auto w{i} = load<V>(p{i} + i);" for i, _ in loads))
        self.put("#pragma unroll", "for (int j = 0; j < V; ++j) {")
        self.put(*(f"const {CTYPES[n.dtype]} x{i} = w{i}.v[j];" for i, n in loads))

    def close_walk(self, stored: Sequence[Placed]) -> None:
        live = "" if self.whole else "if (live) "
        self.put("}", *(f"{live}store<V>(q{i} + i, y{i});" for i, _ in stored), "}")


def load(kernels: Sequence[Fused], schedule: Schedule) -> str:
    body = "\n".join(CudaKernel(k, schedule).text() for k in kernels)
    reduce = _REDUCE if any(k.reductions for k in kernels) else ""
    functions = prelude("cuda", body)
    declared = "\n".join(f"{declaration(k)};" for k in kernels)
    sources = {
        "cpp_sources": f"#include <torch/extension.h>\n{declared}\n",
        "cuda_sources": "\n".join(part for part in (_HEAD, functions, reduce, body) if part),
    }
    return loading(kernels, sources, {"extra_cflags": ["-O2"], "extra_cuda_cflags": ["-O3"]})
