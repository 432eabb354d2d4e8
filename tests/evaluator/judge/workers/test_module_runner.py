"""A worker that cannot begin is no candidate's fault."""

from __future__ import annotations

import os
import signal
from contextlib import closing
from pathlib import Path

import pytest
import torch

from evaluator.builder.builder import Builder
from evaluator.errors import DeviceError
from evaluator.judge.context.baselines import no_build
from evaluator.judge.judge import Judge
from evaluator.judge.workers import module_runner
from tests.evaluator.made_requests import HONEST, evaluation_request


def test_a_device_without_a_context_for_the_worker(tmp_path: Path) -> None:
    """What runs out of contexts on a GPU does as one that is not there."""
    with closing(Judge(torch.device("cpu"), Builder(tmp_path))) as judge:
        context = judge.context_for(evaluation_request())
        with closing(context.workers.new()) as runner:
            runner.device = torch.device("cuda:99")
            with pytest.raises(DeviceError, match="no worker on cuda:99: import: "):
                context.workers.load(runner, HONEST, "ModelNew", triton=False, build=no_build)


def test_a_worker_that_does_not_make_its_context_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None of the candidate has run by then."""
    monkeypatch.setattr(module_runner, "START_TIMEOUT_S", 0.2)
    with closing(Judge(torch.device("cpu"), Builder(tmp_path))) as judge:
        context = judge.context_for(evaluation_request())
        with closing(context.workers.new()) as runner:
            runner.device = torch.device("cuda:99")
            os.kill(runner.worker.pid, signal.SIGSTOP)
            with pytest.raises(DeviceError, match=r"no worker on cuda:99: .* longer than 0.2 s"):
                context.workers.load(runner, HONEST, "ModelNew", triton=False, build=no_build)
