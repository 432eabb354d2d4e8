"""A worker that cannot begin is no candidate's fault."""

from __future__ import annotations

import os
import signal
from contextlib import closing

import pytest
import torch

from evaluator.errors import DeviceError
from evaluator.judge.context.baselines import no_build
from evaluator.judge.judge import Judge
from evaluator.judge.workers import module_runner
from tests.evaluator.made_requests import HONEST, evaluation_request


@pytest.mark.parametrize("in_time", [True, False])
def test_a_worker_that_makes_no_context(
    judge: Judge, monkeypatch: pytest.MonkeyPatch, in_time: bool
) -> None:
    """What runs out of contexts on a GPU does as one that is not there. None of the candidate has
    run by then."""
    context = judge.context_for(evaluation_request())
    with closing(context.workers.new()) as runner:
        runner.device = torch.device("cuda:99")
        if not in_time:
            monkeypatch.setattr(module_runner, "START_TIMEOUT_S", 0.2)
            os.kill(runner.worker.pid, signal.SIGSTOP)
        words = "import: " if in_time else ".* longer than 0.2 s"
        with pytest.raises(DeviceError, match=f"no worker on cuda:99: {words}"):
            context.workers.load(runner, HONEST, "ModelNew", triton=False, build=no_build)
