"""The CUDA sources of the corpus compile, on a machine without a GPU as well."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import torch

from evaluator.build.builder import Builder
from evaluator.build_request import BuildOutcome, BuildRequest
from evaluator.judge.refusal import Refusal
from evaluator.judge.side import Side
from evaluator.judge.worker_limits import WorkerLimits
from evaluator.judge.zygote import Zygote
from tests.honest.corpus import corpus

NVCC = shutil.which("nvcc") or Path("/usr/local/cuda/bin/nvcc").exists()
COMPILED = [kernel for kernel in corpus("gpu") if "load_inline" in kernel.source]


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    running = Zygote()
    yield running
    running.close()


@pytest.mark.slow
@pytest.mark.skipif(not NVCC, reason="nvcc is not installed")
@pytest.mark.parametrize("kernel", COMPILED, ids=lambda kernel: kernel.name)
def test_what_a_gpu_kernel_asks_to_build_compiles(kernel, zygote, shared_cache):
    builder = Builder(shared_cache, cuda_arch="9.0a")
    outcomes: list[BuildOutcome] = []

    def build(order: BuildRequest) -> BuildOutcome:
        outcomes.append(builder.build(order))
        return outcomes[-1]

    worker = zygote.fork(WorkerLimits(memory_bytes=8 * 2**30, cpu_seconds=300))
    side = Side(worker, torch.device("cpu"), 60.0)
    try:
        # Loading the library may fail here, where CUDA's own ones are missing.
        with suppress(Refusal):
            side.load(
                kernel.source,
                "ModelNew",
                threads=1,
                dtype=torch.float32,
                tf32=None,
                triton=False,
                build=build,
                import_timeout_s=60.0,
            )
    finally:
        side.close()
    assert outcomes
    for outcome in outcomes:
        assert outcome.ok, outcome.log
        assert outcome.headers == "light"
