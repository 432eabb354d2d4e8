"""The texts in tests/data/cuobjdump are what cuobjdump 13.1 prints about kernels.cu beside them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from evaluator.collect.code.cuda_code import (
    KernelCode,
    as_trace,
    inspect_kernels,
    read_kernels,
)
from evaluator.collect.collected import KernelTrace
from evaluator.collect.own_collectors import collect_own
from evaluator.errors import ProfilerError
from tests.evaluator.collect.target_requests import request

DATA = Path(__file__).parents[2] / "data" / "cuobjdump"
SCRIPT = """#!/bin/sh
case "$1" in
  --dump-resource-usage) cat {data}/usage.txt ;;
  --dump-sass) cat {data}/sass.txt ;;
esac
"""


@pytest.fixture(scope="module")
def trace() -> KernelTrace:
    return as_trace(read_kernels((DATA / "usage.txt").read_text(), (DATA / "sass.txt").read_text()))


def metrics(trace: KernelTrace, name: str) -> dict[str, float | None]:
    (kernel,) = (kernel for kernel in trace.kernels if kernel.name == name)
    assert (kernel.launches, kernel.time_us) == (0, 0.0)
    return kernel.metrics


def test_every_kernel_by_its_plain_name(trace: KernelTrace) -> None:
    assert {kernel.name for kernel in trace.kernels} == {
        "vector_loads", "divides", "double_constant", "spills", "local_array", "reduces",
        "tensor_cores",
    }  # fmt: skip
    assert trace.launches == 0
    assert {"dram_pct", "grid", "block", "occupancy_pct"} <= set(trace.missing)
    assert not {"registers", "shared_bytes", "load_requests"} & set(trace.missing)


@pytest.mark.parametrize(
    ("kernel", "told"),
    [
        ("vector_loads", {"bytes_per_load_request": 512, "sass_special": 1, "stack_bytes": 0}),
        ("divides", {"sass_divisions": 1, "bytes_per_load_request": 128, "load_requests": 1}),
        ("double_constant", {"fp64_thread_instructions": 1, "fp32_thread_instructions": 0}),
        ("spills", {"registers": 24, "spill_requests": 4, "local_loads": 3, "local_stores": 2}),
        ("local_array", {"spill_requests": 0, "stack_bytes": 64, "local_loads": 1}),
        ("reduces", {"shared_bytes": 16384, "reduction_requests": 1, "sass_barriers": 1}),
        ("reduces", {"sass_shared": 2, "limit_shared": 13, "atomic_requests": 0}),
        ("tensor_cores", {"sass_tensor": 1, "bytes_per_store_request": 256}),
    ],
)
def test_what_the_source_says_is_in_the_code(trace, kernel, told) -> None:
    found = metrics(trace, kernel)
    assert {name: found[name] for name in told} == told


def test_of_instances_of_a_template_the_longest_counts() -> None:
    short, long = (
        KernelCode((9, 0), registers, 0, 0, Counter(instructions=size))
        for registers, size in ((16, 10), (32, 20))
    )
    trace = as_trace({"_Z1kILi1EEvv": short, "_Z1kILi2EEvv": long})
    assert [kernel.metrics["registers"] for kernel in trace.kernels] == [32.0]


@pytest.fixture
def cuobjdump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "bin" / "cuobjdump"
    program.parent.mkdir()
    program.write_text(SCRIPT.format(data=DATA))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    return program


SOURCE = """
import torch
from torch.utils.cpp_extension import load_inline
ext = load_inline(name="plus_one", functions=["plus_one"],
    cpp_sources=["torch::Tensor plus_one(torch::Tensor x) { return x + 1; }"])
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return ext.plus_one(x)
"""


@pytest.mark.thorough
def test_the_libraries_that_a_candidate_builds_are_looked_at(
    cuobjdump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[Path] = []

    def spy(libraries: list[Path]) -> KernelTrace:
        looked_at.extend(libraries)
        return inspect_kernels(libraries)

    monkeypatch.setattr("evaluator.collect.own_collectors.inspect_kernels", spy)
    request(SOURCE, tmp_path)
    collected = collect_own(tmp_path, "static", device="cpu", timeout_s=120)
    assert [library.name for library in looked_at] == ["0-plus_one.so"]
    assert collected.gpu is not None
    assert collected.gpu.kernels[0].metrics["registers"] == 24
    assert collected.work is not None


def test_without_a_library_there_is_nothing_to_look_at(cuobjdump: Path) -> None:
    with pytest.raises(ProfilerError, match="built no library"):
        inspect_kernels([])


def test_without_cuobjdump_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluator.collect.code.cuda_code.find_tool", lambda name: None)
    with pytest.raises(ProfilerError, match="cuobjdump is not installed"):
        inspect_kernels([])
