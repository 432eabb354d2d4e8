"""The CUDA sources of the corpus compile, on a machine without a GPU as well."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from evaluator.builder.builder import Builder
from evaluator.ipc.build_request import BuildOutcome
from evaluator.judge.builds.rehearsal import rehearse
from evaluator.judge.workers.worker_limits import WorkerLimits
from evaluator.judge.workers.zygote import Zygote
from tests.evaluator.judge.builds.test_rehearsal import H200
from tests.honest.corpus import corpus
from tests.honest.run import SETTINGS
from tests.nvcc import needs_nvcc

# A registration takes PyTorch's own headers, and a PyTorch for CPUs lacks those for CUDA. Kernels
# that build after their import need a device.
COMPILED = [
    kernel
    for kernel in corpus("gpu")
    if "cpp_extension" in kernel.source
    and "TORCH_LIBRARY" not in kernel.source
    and kernel.name not in ("swish_built_at_birth", "swish_built_when_called")
]


class Keeping(Builder):
    """A builder that keeps what came of each build."""

    outcomes: tuple[BuildOutcome, ...] = ()

    def build(self, *order: Any, **settings: Any) -> BuildOutcome:
        outcome = super().build(*order, **settings)
        self.outcomes += (outcome,)
        return outcome


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    running = Zygote()
    yield running
    running.close()


@pytest.mark.slow
@needs_nvcc
@pytest.mark.parametrize("kernel", COMPILED, ids=lambda kernel: kernel.name)
def test_what_a_gpu_kernel_asks_to_build_compiles(kernel, zygote, shared_cache):
    builder = Keeping(shared_cache, cuda_arch="9.0a")
    worker = zygote.fork(WorkerLimits(memory_bytes=8 * 2**30, cpu_seconds=300))
    # Loading the library may fail here, where CUDA's own ones are missing.
    built = rehearse(kernel.request(SETTINGS["gpu"]), builder, H200, worker)
    assert built.refused is None
    assert builder.outcomes
    for outcome in builder.outcomes:
        assert outcome.ok, outcome.log
        assert outcome.headers == "light"
