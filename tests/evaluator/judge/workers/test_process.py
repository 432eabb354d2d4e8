"""A worker's life: it ends with its zygote, with its judge's word, and takes everything along."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator.judge.workers.process import WorkerLimits
from evaluator.judge.workers.zygote import Zygote
from tests.evaluator.processes import still_running


@pytest.fixture
def zygote() -> Iterator[Zygote]:
    started = Zygote()
    yield started
    started.close()


def test_how_a_worker_ended_is_told(zygote):
    killed = zygote.fork(WorkerLimits(memory_bytes=16 * 2**30, cpu_seconds=60))
    os.kill(killed.pid, 11)
    assert killed.end(grace_s=10.0).signal_name == "SIGSEGV"
    ended = zygote.fork(WorkerLimits(memory_bytes=16 * 2**30, cpu_seconds=60))
    assert ended.end().status is None
    assert not still_running({ended.pid, ended.init} - {None})


def test_a_gpu_worker_has_no_memory_limit(zygote):
    with zygote.fork(WorkerLimits(memory_bytes=None, cpu_seconds=60)) as worker:
        assert "memory_limit" not in worker.isolation
        assert "judge_out_of_reach" in worker.isolation
    with zygote.fork(WorkerLimits(memory_bytes=None, cpu_seconds=60), confine=False) as trusted:
        assert "seccomp" not in trusted.isolation
        assert "judge_out_of_reach" not in trusted.isolation


def test_when_the_judge_is_gone_its_folders_go_too(zygote):
    with zygote.fork(WorkerLimits(memory_bytes=None, cpu_seconds=60)):
        assert zygote._folder.is_dir()
        # As when the judge's process ends: nobody calls close().
        zygote._channel._socket.shutdown(socket.SHUT_RDWR)
        zygote._process.wait(20.0)
        assert not zygote._folder.exists()


def test_trusted_or_not_a_worker_finds_itself_in_proc(zygote):
    """CUDA's driver looks up its threads there by their numbers, which are the namespace's own."""
    for confine in (True, False):
        with zygote.fork(
            WorkerLimits(memory_bytes=None, cpu_seconds=60), confine=confine
        ) as worker:
            if "pid_namespace" not in worker.isolation:
                assert os.geteuid() != 0
                continue
            shown = [e.name for e in Path(f"/proc/{worker.pid}/root/proc").iterdir()]
            assert len([name for name in shown if name.isdecimal()]) == 2
