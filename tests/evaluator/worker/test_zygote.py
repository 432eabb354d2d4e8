"""The process that imports torch for all workers."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from evaluator.errors import InfrastructureError
from evaluator.judge import zygote as judges
from evaluator.judge.worker_limits import WorkerLimits
from evaluator.judge.zygote import Zygote
from evaluator.walls.environment import python_path
from tests.evaluator.processes import still_running

IMPORTS = """
import os
from evaluator.worker.zygote import _load_openmp

allowed = os.sched_getaffinity(0)
_load_openmp()
bound = os.sched_getaffinity(0)
os.sched_setaffinity(0, allowed)
import torch
torch.ones(10**6).sum()
print(len(bound), os.sched_getaffinity(0) == allowed)
"""


def test_openmp_binds_before_torch_is_imported_and_not_again():
    """Bound to one processor, the zygotes of a host would import torch by turns."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one processor")
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS],
        env=os.environ | {"PYTHONPATH": python_path(), "OMP_PROC_BIND": "spread"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "1 True\n", done.stderr


def test_one_that_does_not_start_is_told_when_it_is_needed(monkeypatch):
    monkeypatch.setattr(judges, "START_TIMEOUT_S", 0.01)
    started = Zygote()
    with pytest.raises(InfrastructureError, match="zygote did not start: WireTimeoutError"):
        started.fork(WorkerLimits(memory_bytes=16 * 2**30, cpu_seconds=60))
    assert not started.alive
    assert not still_running({started._process.pid})
    assert not started._folder.exists()
    started.close()
