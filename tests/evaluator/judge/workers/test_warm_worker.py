"""The worker that is ready before its candidate: who gets it, and that it is in nobody's way."""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import astuple
from pathlib import Path

import pytest

from evaluator.backend_flags import BackendFlags
from evaluator.errors import DeviceError, InfrastructureError
from evaluator.evaluation import Status
from evaluator.hardware.device_lock import device_lock
from evaluator.ipc.wire import Kind
from evaluator.judge import judge as judge_module
from evaluator.judge.context import problem_context as context
from evaluator.judge.context.cache_flush import CacheFlush
from evaluator.judge.context.problem_context import ProblemContext
from evaluator.judge.context.worker_factory import WorkerFactory
from evaluator.judge.judge import Judge
from evaluator.judge.timing import call_cost, sampling
from evaluator.judge.workers import warm_worker
from evaluator.judge.workers.process import WorkerLimits, WorkerProcess
from evaluator.judge.workers.warm_worker import WarmWorker
from evaluator.judge.workers.zygote import Zygote
from evaluator.walls.environment import python_path
from evaluator.worker.orders import LoadOrder
from tests.evaluator.made_requests import HONEST, evaluation_request
from tests.evaluator.processes import descendants, still_running

LIMITS = WorkerLimits(memory_bytes=16 * 2**30, cpu_seconds=60, family_bytes=16 * 2**30)
UNDER_ATTACK = Path(__file__).with_name("warm_worker_under_attack.py")
LESSER_MACHINE = Path(__file__).parents[2] / "walls/lesser_machine.py"


@pytest.fixture(scope="module")
def shared() -> Iterator[Zygote]:
    started = Zygote()
    yield started
    started.close()


@pytest.fixture
def running(shared: Zygote) -> Iterator[Zygote]:
    yield shared
    shared.pool.drop()


@pytest.fixture
def verdict(judge: Judge) -> Callable[..., Status]:
    def judged(source: str) -> Status:
        request = evaluation_request(source, timing_seconds=0.05, call_timeout_s=5.0, audit="never")
        evaluation = judge.evaluate(request)
        print(evaluation.status, evaluation.reason, evaluation.message)  # shown where a test fails
        return evaluation.status

    return judged


def made(running: Zygote) -> WorkerProcess:
    """The warm worker, once it is there."""
    running.pool.settle()
    assert running.pool.first is not None and running.pool.first.worker is not None
    return running.pool.first.worker


def answers(worker: WorkerProcess) -> bool:
    """Whether it is there and takes orders."""
    worker.channel.send(Kind.WARM, b'{"device": "cpu", "context": true}')
    return worker.channel.receive(30.0).kind is Kind.WARMED


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Pids of the confined workers that are handed out from now on."""
    pids: list[int] = []
    fork = Zygote.fork

    def noted(self: Zygote, limits: WorkerLimits, *, confine: bool = True) -> WorkerProcess:
        worker = fork(self, limits, confine=confine)
        pids.append(worker.pid)
        return worker

    monkeypatch.setattr(Zygote, "fork", noted)
    return pids


def test_it_is_the_next_worker_behind_the_same_walls(running):
    with running.fork(LIMITS) as fresh:
        running.pool.prepare(LIMITS)
        waits = made(running)
        assert waits.pid != fresh.pid
        with running.fork(LIMITS) as taken:
            assert taken is waits
            assert taken.isolation == fresh.isolation
        assert running.pool.first is None


def test_what_was_begun_is_what_is_prepared(running):
    running.pool.begin(LIMITS)
    waits = made(running)
    ready = threading.Event()
    running.pool.prepare(LIMITS, then=ready.set)
    assert ready.wait(30.0)
    running.pool.begin(LIMITS)
    assert made(running) is waits and answers(waits)


def test_those_behind_it_follow_in_the_order_in_which_they_were_begun(running):
    running.pool.begin(LIMITS, 3)
    running.pool.settle()
    begun = [waiting.worker for waiting in running.pool._waiting]
    assert len(begun) == 3 and None not in begun
    with running.fork(LIMITS) as first, running.fork(LIMITS) as second:
        running.pool.begin(LIMITS)
        with running.fork(LIMITS) as third:
            assert [first, second, third] == begun
            assert running.pool.first is None
            assert all(map(answers, (first, second, third)))


def test_nobody_is_told_that_nothing_is_in_the_making_before_it_is(running, monkeypatch):
    go_on, ready = threading.Event(), threading.Event()
    with monkeypatch.context() as patched:
        fork = running._fork_fresh
        patched.setattr(running, "_fork_fresh", lambda *a, **k: go_on.wait() and fork(*a, **k))
        running.pool.begin(LIMITS, 2)
        running.pool.prepare(LIMITS, then=ready.set)
        assert not ready.wait(0.2)
        go_on.set()
        assert ready.wait(30.0)
    assert None not in [waiting.worker for waiting in running.pool._waiting]


def test_where_one_failed_the_others_stay(running):
    running.pool.begin(LIMITS, 3)
    running.pool.settle()
    failed, *others = running.pool._waiting
    assert failed.worker is not None
    failed.worker.end()
    failed.worker = None
    running.pool.begin(LIMITS, 3)
    running.pool.settle()
    assert list(running.pool._waiting)[:2] == others
    assert len(running.pool._waiting) == 3
    running.pool.begin(WorkerLimits(8 * 2**30, cpu_seconds=60))
    assert len(running.pool._waiting) == 1


def test_a_trusted_worker_leaves_it_alone(running):
    running.pool.prepare(LIMITS)
    waits = made(running)
    with running.fork(WorkerLimits(None, cpu_seconds=60), confine=False) as trusted:
        assert trusted is not waits
    assert made(running) is waits and answers(waits)


def test_a_trusted_one_has_the_compiler_at_hand(running):
    limits = WorkerLimits(None, cpu_seconds=60)
    running.compilers.begin(limits)
    running.compilers.settle()
    waits = running.compilers.first.worker
    source = "import sys\nsys.modules['torch._inductor.compile_fx']\nclass Model: pass\n"
    order = LoadOrder(source, "Model", 1, "float32", astuple(BackendFlags()), "lines")
    with running.fork(limits, confine=False) as trusted:
        assert trusted is waits
        trusted.channel.send(Kind.LOAD, order.encode())
        assert trusted.channel.receive(30.0).kind is Kind.WARMED
        assert trusted.channel.receive(30.0).kind is Kind.IMPORTED


def test_with_other_limits_it_is_of_no_use_and_ended(running):
    running.pool.prepare(LIMITS)
    waits = made(running)
    with running.fork(WorkerLimits(8 * 2**30, cpu_seconds=60)) as fresh:
        assert fresh is not waits and not still_running({waits.pid})


def test_what_it_could_not_do_is_told_and_not_raised(running, monkeypatch, capsys):
    """A device that isn't there stands for one without room for another context."""
    monkeypatch.setattr(running.pool, "_device", "cuda:99")
    running.pool.prepare(LIMITS)
    running.pool.settle()
    assert "no warm worker: it could not warm up" in capsys.readouterr().err
    with running.fork(LIMITS) as fresh:
        assert answers(fresh)


@pytest.mark.parametrize("fault", ["stopped", "device"])
def test_one_that_has_gone_bad_meanwhile_is_not_handed_out(running, monkeypatch, fault):
    running.pool.prepare(LIMITS)
    waits = made(running)
    if fault == "stopped":
        os.kill(waits.pid, signal.SIGSTOP)
        monkeypatch.setattr(warm_worker, "START_TIMEOUT_S", 0.5)
    else:
        # A context that was lost with its device fails where it is used next.
        monkeypatch.setattr(running.pool.first, "_device", "cuda:99")
    with running.fork(LIMITS) as fresh:
        assert fresh is not waits and not still_running({waits.pid})
        assert answers(fresh)


def test_a_fork_that_fails_ends_nobody(running):
    """Descriptors stand for processes, of which root may have as many as it likes."""
    pid = running._process.pid
    numbers = [int(entry.name) for entry in Path(f"/proc/{pid}/fd").iterdir()]
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    with running.fork(LIMITS) as worker:
        # Enough for what comes with the order, not for the pipes of a fork.
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (len(numbers) + 3, limits[1]))
        try:
            with pytest.raises(InfrastructureError, match="could not be forked"):
                running.fork(LIMITS)
        finally:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
        with running.fork(LIMITS):
            assert answers(worker) and running.alive
    assert len(list(Path(f"/proc/{pid}/fd").iterdir())) == len(numbers)


def test_without_a_thread_there_is_no_worker_and_nothing_is_left(running, monkeypatch, capsys):
    def refused(self):
        raise RuntimeError("can't start new thread")

    # What earlier tests left to the garbage collector would be closed in between.
    gc.collect()
    before = len(list(Path("/proc/self/fd").iterdir())), set(running._folder.iterdir())
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refused)
        with pytest.raises(InfrastructureError, match="forked: can't start new thread"):
            running.fork(LIMITS)
        running.pool.prepare(LIMITS)
        running.pool.settle()
    assert "no warm worker: a worker could not be forked" in capsys.readouterr().err
    assert (len(list(Path("/proc/self/fd").iterdir())), set(running._folder.iterdir())) == before
    with running.fork(LIMITS) as fresh:
        assert answers(fresh)


@pytest.mark.parametrize(("settled", "killed"), [(True, False), (False, True)])
def test_it_ends_with_its_zygote(settled, killed):
    threads = set(threading.enumerate())
    started = Zygote()
    before = descendants(os.getpid())
    started.pool.prepare(LIMITS)
    if settled:
        started.pool.settle()
    left = descendants(os.getpid()) - before
    if killed:
        started._process.kill()
        started._process.wait()
    started.close()
    assert not still_running(left)
    assert not started._folder.exists()
    assert set(threading.enumerate()) <= threads


@pytest.mark.thorough
def test_the_next_candidate_has_it_however_the_last_one_ended(verdict, judge, handed):
    for source, status in (
        (HONEST, Status.CORRECT),
        ("class ModelNew(", Status.RUNTIME_ERROR),
        (HONEST.replace("* 2.0", "* 2.5"), Status.INCORRECT),
        (HONEST, Status.CORRECT),
    ):
        ordered = judge._zygote.pool.first if judge._zygote else None
        handed.clear()
        assert verdict(source) is status
        if ordered is not None:
            assert ordered.worker is not None and handed[0] == ordered.worker.pid
        with device_lock("cpu"):
            # Nothing of ours goes on once a device is given back.
            ready = judge._zygote.pool.first
            assert ready is not None and ready.worker is not None


def test_an_exception_gives_the_device_back(verdict, judge):
    assert verdict(HONEST) is Status.CORRECT
    with pytest.raises(KeyError, match="ours"), judge.holding("cpu"):
        raise KeyError("ours")
    assert verdict(HONEST) is Status.CORRECT


@pytest.mark.thorough
def test_nothing_is_timed_while_one_is_in_the_making(verdict, judge, monkeypatch):
    """Here none is made before somebody waits for it, so that one who doesn't is found out."""
    made, timed = [], []
    asked = threading.Event()
    make, settle = WarmWorker._make, WarmWorker.settle

    def late(self, fork):
        asked.wait()
        make(self, fork)
        made.append(self.worker)

    def waited(self):
        asked.set()
        settle(self)
        asked.clear()

    def noting(what, function):
        def noted(*arguments, **named):
            waiting = judge._zygote.pool._waiting
            timed.append((what, any(each.in_the_making for each in waiting)))
            return function(*arguments, **named)

        return noted

    judge.close()
    monkeypatch.setattr(WarmWorker, "_make", late)
    monkeypatch.setattr(WarmWorker, "settle", waited)
    # One after each worker that is handed out, more than the judge asks for.
    new = WorkerFactory.new
    monkeypatch.setattr(
        WorkerFactory, "new", lambda *a, **named: new(*a, **named | {"another": True})
    )
    monkeypatch.setattr(call_cost, "_known", {})
    monkeypatch.setattr(context, "measure_ceilings", noting("ceilings", context.measure_ceilings))
    monkeypatch.setattr(sampling, "watch", noting("block", sampling.watch))
    monkeypatch.setattr(CacheFlush, "run", noting("call", CacheFlush.run))
    try:
        # The second finds everything set up and measured.
        assert [verdict(HONEST), verdict(HONEST)] == [Status.CORRECT, Status.CORRECT]
    finally:
        judge.close()
    assert made
    assert set(timed) == {("ceilings", False), ("block", False), ("call", False)}


@pytest.mark.slow
def test_where_a_problem_does_not_fit_the_warm_worker_makes_room(judge, verdict, monkeypatch):
    assert verdict(HONEST) is Status.CORRECT
    waits = made(judge._zygote)

    def fits(*arguments):
        if Path(f"/proc/{waits.pid}").exists():
            raise DeviceError("no room")
        return ProblemContext(*arguments)

    monkeypatch.setattr(judge_module, "ProblemContext", fits)
    judge._forget_contexts(keep=0)
    assert verdict(HONEST) is Status.CORRECT


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a lesser machine of this one")
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("user", marks=pytest.mark.thorough),
        pytest.param("container", marks=pytest.mark.slow),
        pytest.param("locked", marks=pytest.mark.slow),
    ],
)
def test_no_candidate_reaches_that_of_its_successor(kind):
    """Where nothing keeps them apart there is none."""
    done = subprocess.run(
        [sys.executable, str(LESSER_MACHINE), kind, sys.executable, str(UNDER_ATTACK)],
        env=os.environ | {"PYTHONPATH": python_path()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    if kind == "locked":
        assert told == {"warm worker": False}
    else:
        assert told == {"warm worker": True, "reached": [], "same": True, "state": "S"}
