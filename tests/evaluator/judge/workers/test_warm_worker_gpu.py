"""On a GPU the warm worker has its context before a candidate asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from evaluator.hardware.devices import list_gpus
from evaluator.hardware.nvml import hidden_device_files
from evaluator.judge.workers.process import WorkerLimits
from evaluator.judge.workers.zygote import Zygote
from tests.evaluator.judge.workers.test_warm_worker import made

pytestmark = pytest.mark.gpu

GPU_LIMITS = WorkerLimits(None, cpu_seconds=60, family_bytes=16 * 2**30)


@pytest.fixture
def started() -> Iterator[Zygote]:
    zygote = Zygote(device="cuda:0")
    yield zygote
    zygote.close()


def test_on_a_gpu_it_has_its_context_before_its_candidate(started):
    with started.fork(GPU_LIMITS) as fresh:
        assert not holds_device(fresh.pid)
        started.pool.prepare(GPU_LIMITS)
        waits = made(started)
        assert holds_device(waits.pid)
        with started.fork(GPU_LIMITS) as taken:
            assert taken is waits
            assert taken.isolation == fresh.isolation


def test_on_a_gpu_no_context_is_made_before_it_is_asked_for(started):
    torch.cuda.init()
    empty, _ = torch.cuda.mem_get_info(0)
    started.pool.begin(GPU_LIMITS)
    waits = made(started)
    assert torch.cuda.mem_get_info(0)[0] == empty
    started.pool.prepare(GPU_LIMITS)
    assert made(started) is waits
    assert torch.cuda.mem_get_info(0)[0] < empty - 64 * 2**20


def test_on_a_gpu_those_behind_it_get_a_context_when_they_are_taken(started):
    torch.cuda.init()
    started.pool.begin(GPU_LIMITS, 2)
    started.pool.prepare(GPU_LIMITS)
    started.pool.settle()
    begun = [waiting.worker for waiting in started.pool._waiting]
    with started.fork(GPU_LIMITS) as first:
        before = torch.cuda.mem_get_info(0)[0]
        with started.fork(GPU_LIMITS) as second:
            assert [first, second] == begun
            assert torch.cuda.mem_get_info(0)[0] < before - 64 * 2**20


@pytest.mark.skipif(len(list_gpus()) < 2, reason="needs two GPUs")
def test_a_worker_sees_no_other_gpus_file(monkeypatch, request):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", list_gpus()[1].uuid)
    hidden = hidden_device_files()
    assert hidden
    # Its zygote starts with this environment.
    started = request.getfixturevalue("started")
    started.pool.prepare(GPU_LIMITS)
    files = Path(f"/proc/{made(started).pid}/root/dev")
    assert all((files / path.name).is_char_device() for path in hidden)
    assert {(files / path.name).stat().st_rdev for path in hidden} == {
        Path("/dev/null").stat().st_rdev
    }
    assert holds_device(made(started).pid)


def holds_device(pid: int) -> bool:
    """Whether CUDA's driver has opened a device for that process."""
    names = (str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir())
    return any(name.startswith("/dev/nvidia") for name in names)
