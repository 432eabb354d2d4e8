"""What is told of a worker's quiescence from outside: states of real processes, and majorities."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from evaluator.judge.workers import quiescence


@contextmanager
def _process(code: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process group of its own that has said one line."""
    command = [sys.executable, "-c", f"print(flush=True)\n{code}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def test_a_machine_that_stood_still_blames_nobody(monkeypatch) -> None:
    """A look that takes longer than all patience: it can say nothing about the time between."""
    looks = []

    def late(pid: int, init: int | None) -> list[quiescence.Task]:
        looks.append(time.sleep(0.05))
        return [quiescence.Task(pid, pid, "R" if len(looks) < 4 else "S")]

    monkeypatch.setattr(quiescence, "tasks", late)
    assert quiescence.comes_to_rest(1, patience_s=0.01)


def test_a_thread_in_a_long_system_call_is_waited_for() -> None:
    code = (
        "import mmap, threading, time\n"
        "populated = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x8000\n"
        "fill = lambda: mmap.mmap(-1, 2**29, flags=populated)\n"
        "threading.Thread(target=fill, daemon=True).start()\n"
        "time.sleep(60)"
    )
    with _process(code) as process:
        quiescence.hold(process.pid)
        assert quiescence.stands_still(process.pid)
        assert {task.state for task in quiescence.tasks(process.pid)} == {"T"}


def test_a_child_in_the_group_must_have_stopped(monkeypatch) -> None:
    monkeypatch.setattr(quiescence, "_STOP_TIMEOUT_S", 0.5)
    with _process("import os, time\nos.fork()\ntime.sleep(60)") as process:
        time.sleep(0.1)
        # As if another child had sent SIGCONT to its child before it stopped itself.
        os.kill(process.pid, signal.SIGSTOP)
        assert not quiescence.stands_still(process.pid)


def test_what_left_the_group_must_sleep(monkeypatch) -> None:
    monkeypatch.setattr(quiescence, "_STOP_TIMEOUT_S", 0.5)
    code = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    {}\ntime.sleep(60)"
    for child, stands_still in (("time.sleep(60)", True), ("while True: pass", False)):
        with _process(code.format(child)) as process:
            time.sleep(0.1)
            quiescence.hold(process.pid)
            assert quiescence.stands_still(process.pid) is stands_still
            for task in quiescence.tasks(process.pid):
                os.kill(task.group, signal.SIGKILL)


def test_a_held_process_stands_still_until_it_is_let_go() -> None:
    with _process("while True: pass") as process:
        quiescence.hold(process.pid)
        assert quiescence.stands_still(process.pid)
        assert {task.state for task in quiescence.tasks(process.pid)} == {"T"}
        assert quiescence.comes_to_rest(process.pid, patience_s=0.0)
        quiescence.let_go(process.pid)
        assert not quiescence.comes_to_rest(process.pid, patience_s=0.3)
        assert not quiescence.is_gone(process.pid)
    assert quiescence.is_gone(process.pid)


def test_work_before_the_start_needs_a_majority_of_calls() -> None:
    baseline = [200.0, 250.0, 900.0, 220.0, 210.0, 240.0, 205.0, 215.0]
    assert not quiescence.works_early([210.0] * 5 + [9000.0] * 3, baseline)
    assert not quiescence.works_early([1800.0] * 8, baseline)
    assert quiescence.works_early([4000.0] * 7 + [200.0], baseline)
    assert not quiescence.works_early([4000.0] * 3, baseline)
