"""A source is spared headers that it does not name, and being wrong about it costs time alone."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from evaluator.builder import workshop
from evaluator.builder.builder import Builder
from evaluator.builder.toolchain import Cuda
from evaluator.builder.unneeded_headers import lean_flags, may_lack
from evaluator.ipc.build_request import BuildRequest
from tests.nvcc import needs_nvcc


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("torch::Tensor f(torch::Tensor x) { return x; }", set()),
        ("const float m = std::max(a, std::sqrt(b));", set()),
        ("cudaStream_t stream = c10::cuda::getCurrentCUDAStream();", set()),
        ("std :: unordered_map<int, int> known;", {"LIBRARY"}),
        ("using namespace std;", {"LIBRARY"}),
        ("for (auto i : c10::irange(n)) {}", {"LIBRARY"}),
        ("__half2float(h)", {"NUMBERS"}),
        ("AT_DISPATCH_REDUCED_FLOATING_TYPES(t, name, f)", {"NUMBERS"}),
        ("x.data_ptr<at::BFloat16>()", {"NUMBERS"}),
        ("__nv_fp8_e4m3 x;", {"NUMBERS"}),
    ],
)
def test_what_is_named_is_read(text: str, read: set[str]) -> None:
    flags = set(lean_flags(text))
    assert ("-DCCCL_DISABLE_FP16_SUPPORT" in flags) is ("NUMBERS" not in read)
    left_out = {flag.removeprefix("-DREFINERY_LEAN_") for flag in flags}
    assert {"LIBRARY", "NUMBERS"} - left_out == read


_LIMITED = "-D_CG_LIMIT_INCLUDED_DEPENDENCIES"


@pytest.mark.parametrize(
    ("text", "limited"),
    [
        ("namespace cg = cooperative_groups; at::cuda::getCurrentCUDAStream();", True),
        ("at::cuda::getCurrentCUDAStream();", False),
        ("cooperative_groups::this_grid(); cuda::atomic_ref<int> seen(x);", False),
        ("#include <cooperative_groups.h>\n#include <cuda/barrier>", False),
        ("cooperative_groups::reduce_update_async(tile, seen, x, plus)", False),
        ("cooperative_groups::inclusive_scan_update(tile, seen, x)", False),
        ("cooperative_groups::thread_block::thread_scope", False),
        ("cooperative_groups::reduce(tile, int8_t(x), plus)", False),
        ("using namespace cooperative_groups; const uint8_t* x", True),
    ],
)
def test_cooperative_groups_do_without_libcuxx_where_it_is_not_named(
    text: str, limited: bool
) -> None:
    assert (_LIMITED in lean_flags(text)) is limited


_GROUPS = """
#include <cuda_fp16.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

struct Best { float value; int index; };

template <typename T>
__global__ void sums(const T* x, T* y, int n) {
  auto block = cg::this_thread_block();
  auto grid = cg::this_grid();
  auto tile = cg::tiled_partition<32>(block);
  T sum = 0;
  for (int i = grid.thread_rank(); i < n; i += grid.size()) sum += x[i];
  const T most = cg::reduce(tile, sum, cg::greater<T>());
  const T before = cg::exclusive_scan(tile, sum);
  const T least = cg::inclusive_scan(cg::coalesced_threads(), sum, cg::less<T>());
  auto part = cg::labeled_partition(tile, static_cast<int>(sum) & 3);
  const T some = cg::reduce(part, sum, cg::plus<T>());
  grid.sync();
  y[grid.thread_rank()] = most + before + least + some + tile.shfl_xor(sum, 3);
}
template __global__ void sums<float>(const float*, float*, int);
template __global__ void sums<double>(const double*, double*, int);
template __global__ void sums<long long>(const long long*, long long*, int);

__global__ void others(Best* best, __half* half, unsigned char* letter) {
  auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  *best = cg::reduce(tile, *best, [](Best a, Best b) { return a.value > b.value ? a : b; });
  *half = tile.shfl_down(*half, 1);
  *letter = tile.shfl(*letter, 2);
}
"""


@pytest.mark.thorough
@needs_nvcc
def test_kernels_over_cooperative_groups_come_out_the_same(tmp_path: Path) -> None:
    nvcc = Cuda.find().nvcc
    (tmp_path / "groups.cu").write_text(_GROUPS)
    made = []
    for flags in ((), (_LIMITED,)):
        compile_to_ptx = [nvcc, "-ptx", "-arch=sm_90a", "-std=c++17", *flags, "groups.cu"]
        subprocess.run([*compile_to_ptx, "-o", "groups.ptx"], cwd=tmp_path, check=True)
        text = (tmp_path / "groups.ptx").read_text()
        # Without its empty objects (std::ignore and the like), which nothing uses.
        made.append([line for line in text.splitlines() if "4cuda3std" not in line])
    assert sum(line.startswith(".visible .entry") for line in made[0]) == 4
    assert made[0] == made[1]


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ('cuda.cu(35): error: identifier "stride" is undefined', False),
        ("main.cpp:13:24: error: 'columns' was not declared in this scope; did you", False),
        ('cuda.cu(9): error: expected a ";"', False),
        ("main.cpp:9:3: error: expected ';' before 'return'", False),
        ('cuda.cu(35): error: identifier "sort" is undefined', True),
        ("main.cpp:2:5: error: 'unique_ptr' was not declared in this scope", True),
        ('cuda.cu(3): error: identifier "__half2" is undefined', True),
        ('cuda.cu(3): error: namespace "std" has no member "gcd"', True),
        ('refinery/core.h(302): error: static assertion failed with "a message needs st', True),
        ("Killed", True),
    ],
)
def test_an_error_that_is_plainly_the_sources_own(printed: str, expected: bool) -> None:
    assert may_lack(f"{printed}\n") is expected


@dataclass
class Compiled:
    """The compiler runs of one build, each with what it was told to leave out."""

    left_out: list[set[str]] = field(default_factory=list)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Compiled:
    seen = Compiled()
    run = workshop.Workshop.run

    def watched(self, command, folder, timeout_s):
        if "-c" in command:
            seen.left_out.append({word for word in command if "REFINERY_LEAN" in word})
        return run(self, command, folder, timeout_s)

    monkeypatch.setattr(workshop.Workshop, "run", watched)
    return seen


def test_a_name_that_was_overlooked_costs_a_second_compilation(
    builder: Builder, compiled: Compiled
) -> None:
    sums = """
        #include <torch/extension.h>
        double sums(std::vector<double> v) { return accumulate(v.begin(), v.end(), 0.25); }
    """
    outcome = builder.build(
        BuildRequest(name="overlooked", cpp_sources=(sums,), functions=(("sums", ""),))
    )
    assert outcome.ok, outcome.log
    assert (outcome.headers, outcome.log) == ("light", "")
    assert [bool(left_out) for left_out in compiled.left_out] == [True, False]


def test_a_mistake_of_the_sources_own_is_compiled_once(
    builder: Builder, compiled: Compiled
) -> None:
    wrong = """
        #include <torch/extension.h>
        torch::Tensor twice(torch::Tensor x) { return x * factor; }
    """
    outcome = builder.build(
        BuildRequest(name="mistaken", cpp_sources=(wrong,), functions=(("twice", ""),))
    )
    assert not outcome.ok
    assert "factor" in outcome.log
    assert len(compiled.left_out) == 1
