"""Several workers that are ready before their candidate: how many, and in which order they go."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from evaluator.build.builder import Builder
from evaluator.evaluation import Backend, Candidate, EvaluationRequest, Settings, Status
from evaluator.judge import judge
from evaluator.judge.judge import Judge
from evaluator.judge.process import WorkerProcess
from evaluator.judge.spare import Spare
from evaluator.judge.worker_limits import WorkerLimits
from evaluator.judge.zygote import Zygote
from tests.evaluator.conftest import HONEST, SCALE_AND_BIAS
from tests.evaluator.judge.test_process import gone

LIMITS = WorkerLimits(memory_bytes=16 * 2**30, cpu_seconds=60, family_bytes=16 * 2**30)
OTHERS = WorkerLimits(memory_bytes=8 * 2**30, cpu_seconds=60)


@pytest.fixture
def running() -> Iterator[Zygote]:
    started = Zygote()
    yield started
    started.close()


def pids(spares: tuple[Spare, ...]) -> list[int]:
    """Of those that are made."""
    return [spare.worker.pid for spare in spares if spare.worker is not None]


def test_each_goes_to_one_and_no_more_are_made_than_asked_for(running: Zygote) -> None:
    running.prepare(LIMITS, count=3)
    running.settle()
    first = pids(running._spares.waiting)
    assert len(set(first)) == 3
    running.prepare(LIMITS, count=2)
    running.begin(LIMITS)
    running.settle()
    assert pids(running._spares.waiting) == first
    with running.fork(LIMITS) as one, running.fork(LIMITS) as two:
        assert [one.pid, two.pid] == first[:2]
        running.prepare(LIMITS, count=2)
        running.settle()
        third, fourth = pids(running._spares.waiting)
        assert third == first[2] and fourth not in first
    assert running.drop_spares() and not running.drop_spares()
    assert gone(third) and gone(fourth)


def test_one_that_is_made_goes_before_one_in_the_making(
    running: Zygote, monkeypatch: pytest.MonkeyPatch
) -> None:
    forked, go_on = running._fork_fresh, threading.Event()
    turn = iter((True, False))

    def first_is_late(limits: WorkerLimits, *, confine: bool) -> WorkerProcess:
        if next(turn):
            go_on.wait()
        return forked(limits, confine=confine)

    monkeypatch.setattr(running, "_fork_fresh", first_is_late)
    ready = threading.Event()
    try:
        running.prepare(LIMITS)
        running.prepare(LIMITS, then=ready.set, count=2)
        late, early = running._spares.waiting
        early.settle()
        with running.fork(LIMITS) as taken:
            assert early.worker is taken and not late.made
            # Whoever waits for the device must not get it while one is in the making.
            assert not ready.wait(0.2)
            go_on.set()
            assert ready.wait(30.0)
            running.settle()
            assert late.made
    finally:
        go_on.set()


def test_those_with_other_limits_and_those_that_died_are_passed_over(running: Zygote) -> None:
    running.prepare(OTHERS, count=2)
    running.settle()
    of_no_use = pids(running._spares.waiting)
    running.prepare(LIMITS, count=2)
    running.settle()
    assert all(map(gone, of_no_use))
    dead, alive = running._spares.waiting
    assert dead.worker is not None
    os.kill(dead.worker.pid, signal.SIGKILL)
    assert gone(dead.worker.pid)
    with running.fork(LIMITS) as taken:
        assert taken is alive.worker


def test_a_candidate_finds_one_for_each_size(
    shared_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed: list[int] = []
    fork = Zygote.fork

    def noted(self: Zygote, limits: WorkerLimits, *, confine: bool = True) -> WorkerProcess:
        worker = fork(self, limits, confine=confine)
        handed.append(worker.pid)
        return worker

    monkeypatch.setattr(Zygote, "fork", noted)
    hidden = tuple(SCALE_AND_BIAS.replace("256, 512", sizes) for sizes in ("7, 512", "1, 512"))
    request = EvaluationRequest(
        problem_id="test",
        reference=SCALE_AND_BIAS,
        hidden_references=hidden,
        candidate=Candidate(source=HONEST, backend=Backend.CPP),
        settings=Settings(timing_seconds=0.05, call_timeout_s=5.0, audit="never"),
    )
    judging = Judge(torch.device("cpu"), Builder(shared_cache))

    def verdict() -> Status:
        handed.clear()
        evaluation = judging.evaluate(request)
        assert judging._zygote is not None
        judging._zygote.settle()
        return evaluation.status

    def waiting() -> list[int]:
        assert judging._zygote is not None
        return pids(judging._zygote._spares.waiting)

    try:
        assert verdict() is Status.CORRECT
        ready = waiting()
        assert len(ready) == 3
        assert verdict() is Status.CORRECT
        assert handed == ready
        monkeypatch.setattr(judge, "_FREE_ON_HOST", 2.0)
        ready = waiting()
        assert verdict() is Status.CORRECT
        assert handed == ready and len(waiting()) == 1
    finally:
        judging.close()
