"""The process that imports torch for all workers."""

from __future__ import annotations

import os
import threading

import pytest

from evaluator.errors import InfrastructureError
from evaluator.judge.workers import zygote as judges
from evaluator.judge.workers.process import WorkerLimits
from evaluator.judge.workers.zygote import Zygote
from tests.evaluator.processes import still_running


def test_while_it_imports_torch_it_may_use_all_processors():
    """Bound to the first one by OpenMP's runtime, the zygotes of a host would import by turns."""
    allowed = os.sched_getaffinity(0)
    seen = []
    started = Zygote()
    ready = threading.Thread(target=started._walls)
    ready.start()
    while ready.is_alive():
        seen.append(os.sched_getaffinity(started._process.pid) == allowed)
        ready.join(0.005)
    started.close()
    assert len(seen) > 20
    assert sum(seen) > 0.9 * len(seen)


def test_one_that_does_not_start_is_told_when_it_is_needed(monkeypatch):
    monkeypatch.setattr(judges, "START_TIMEOUT_S", 0.01)
    started = Zygote()
    with pytest.raises(InfrastructureError, match="zygote did not start: WireTimeoutError"):
        started.fork(WorkerLimits(memory_bytes=16 * 2**30, cpu_seconds=60))
    assert not started.alive
    assert not still_running({started._process.pid})
    assert not started._folder.exists()
    with pytest.raises(InfrastructureError, match="zygote did not start"):
        started.fork(WorkerLimits(memory_bytes=16 * 2**30, cpu_seconds=60))
    started.close()
