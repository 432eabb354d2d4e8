"""What a worker is between its calls, and one that cannot begin, which is no candidate's fault."""

from __future__ import annotations

import os
import signal
from contextlib import closing

import pytest
import torch

from evaluator.errors import DeviceError
from evaluator.judge.context.baselines import no_build
from evaluator.judge.context.construction import Construction
from evaluator.judge.inputs.mapped_arguments import MappedArguments
from evaluator.judge.judge import Judge
from evaluator.judge.workers import module_runner, quiescence
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


def test_a_worker_stands_still_while_its_inputs_are_laid(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of any size: it could work on parts of them as they come, before its time starts."""
    context, seen = judge.context_for(evaluation_request()), list[str]()
    with closing(context.workers.new()) as runner:
        context.workers.load(runner, HONEST, "ModelNew", triton=False, build=no_build)
        Construction(context.setup, {}).on(runner)
        order, lay = context.draws.plain().order, MappedArguments.lay

        def watched(laid: MappedArguments) -> None:
            seen.extend(task.state for task in quiescence.tasks(runner.worker.pid))
            lay(laid)

        monkeypatch.setattr(MappedArguments, "lay", watched)
        with runner.call(order):
            pass
    assert set(seen) == {"T"}


def test_one_that_finds_no_memory_for_another_slot_is_closed(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = judge.context_for(evaluation_request())

    def none_left(*_: object, **__: object) -> None:
        raise DeviceError("no room")

    with closing(context.workers.new()) as runner:
        context.workers.load(runner, HONEST, "ModelNew", triton=False, build=no_build)
        Construction(context.setup, {}).on(runner)
        monkeypatch.setattr(module_runner, "make_arena", none_left)
        with pytest.raises(DeviceError, match="no room"):
            runner.construct_again()


BEHIND = """
import mmap, os, torch

class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()

    def forward(self, x):
        orphan, flag = {orphan}, mmap.mmap(-1, 1)
        child = os.fork()
        if child == 0 and (not orphan or os.fork() == 0):
            flag[0] = 1
            populated = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x8000
            mmap.mmap(-1, 2**28, flags=populated)
            while True:
                pass
        if child == 0:
            os._exit(0)
        if orphan:
            os.waitpid(child, 0)
        while not flag[0]:
            pass
        return x
"""


@pytest.mark.parametrize("orphan", [False, True])
def test_children_stand_still_when_outputs_are_read(judge: Judge, orphan: bool) -> None:
    """Also one in a long system call, which cannot be stopped at once."""
    context = judge.context_for(evaluation_request())
    with closing(context.workers.new()) as runner:
        source = BEHIND.format(orphan=orphan)
        context.workers.load(runner, source, "ModelNew", triton=False, build=no_build)
        Construction(context.setup, {}).on(runner)
        with runner.call(context.draws.plain().order):
            found = quiescence.tasks(runner.worker.pid, runner.worker.init)
            own = [task for task in found if task.process != runner.worker.init]
            assert len({task.process for task in own}) == 2
            assert {task.state for task in own} == {"T"}
