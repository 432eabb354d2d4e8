"""Counted here are the kernel's own events, which need no PMU; the processor's may be missing."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator.collect.counters import perf_counters
from evaluator.collect.counters.call_counter import CallCounter, Mark
from evaluator.collect.counters.perf_counters import (
    SOFTWARE,
    NoCountersError,
    PerfCounters,
    refusal,
)
from evaluator.ipc.wire import WireError

BURN_S = 0.02
WORK = f"""
import sys, threading, time
def burn():
    end = time.thread_time() + {BURN_S}
    while time.thread_time() < end: pass
for _ in sys.stdin:
    threads = [threading.Thread(target=burn) for _ in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    print("done", flush=True)
"""


class Worker:
    """A process that keeps two new threads busy whenever it is told to."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def work(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"


@pytest.fixture
def worker() -> Iterator[Worker]:
    worker = Worker()
    yield worker
    worker.process.communicate()


def test_threads_that_start_later_are_counted_and_nothing_outside(worker: Worker) -> None:
    counters = PerfCounters(worker.process.pid, SOFTWARE)
    worker.work()
    assert counters.read() == {"task_ns": 0.0, "page_faults": 0.0}
    counters.start()
    worker.work()
    counters.stop()
    counted = counters.read()
    assert counted["task_ns"] >= 2 * BURN_S * 1e9
    worker.work()
    assert counters.read() == counted
    counters.close()


def test_a_call_is_what_lies_between_its_marks(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(perf_counters, "EVENTS", SOFTWARE)
    counter = CallCounter(worker.process.pid)
    for _ in range(3):
        assert counter.answer(bytes([Mark.BEGIN])) == b"+"
        worker.work()
        assert counter.answer(bytes([Mark.CALL_ENDED])) == b"+"
        counter.answer(bytes([Mark.BEGIN]))
        counter.answer(bytes([Mark.NOTHING_ENDED]))
    # One call, however often it was made.
    assert 2 * BURN_S * 1e9 <= counter.counts()["task_ns"] < 3 * 2 * BURN_S * 1e9
    for wrong in (b"", b"\0", b"\x01\x02", b"\xff"):
        with pytest.raises(WireError):
            counter.answer(wrong)
    counter.close()


def test_empty_windows_are_taken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """The arithmetic, on readings as the kernel gives them: count, time enabled, time running."""
    counter = CallCounter.__new__(CallCounter)
    counter._windows = {
        Mark.BEGIN: [],
        Mark.CALL_ENDED: [{"cycles": 110.0}, {"cycles": 130.0, "branches": 4.0}, {"cycles": 900.0}],
        Mark.NOTHING_ENDED: [{"cycles": 10.0, "branches": 9.0}],
    }
    assert counter.counts() == {"cycles": 120.0, "branches": 0.0}


@pytest.mark.parametrize(
    ("readings", "value"),
    [
        ([(100, 50, 50)], 100.0),
        ([(100, 50, 25)], 200.0),
        ([(100, 50, 50), (7, 10, 10)], 107.0),
        ([(0, 0, 0)], 0.0),
        ([(0, 50, 0)], None),
    ],
)
def test_counters_that_took_turns_are_scaled(
    monkeypatch: pytest.MonkeyPatch, readings: list[tuple[int, int, int]], value: float | None
) -> None:
    counters = PerfCounters(os.getpid(), SOFTWARE)
    left = [perf_counters._READING.pack(*reading) for reading in readings]
    monkeypatch.setattr(perf_counters.os, "read", lambda handle, size: left.pop(0))
    monkeypatch.setattr(counters, "_handles", {"cycles": list(range(len(readings)))})
    assert counters.read() == ({} if value is None else {"cycles": value})


def test_what_this_machine_says_is_believed() -> None:
    """True here or not, the answer is the same for a process that is to be counted."""
    refused = refusal()
    counter = CallCounter(os.getpid())
    assert counter.reason == (str(refused) if refused else "")
    assert bool(counter.answer(bytes([Mark.BEGIN]))) is (refused is None)
    counter.close()
    if refused:
        assert refused.remedy
        assert counter.counts() == {}


@pytest.mark.parametrize(
    ("number", "paranoid", "reason", "remedy"),
    [
        (errno.ENOENT, "2", "without a PMU", "on the host"),
        (errno.EACCES, "3", "kernel.perf_event_paranoid is 3", "sysctl"),
        (errno.EPERM, "4", "kernel.perf_event_paranoid is 4", "CAP_PERFMON"),
        (errno.EPERM, "2", "container's filter", "--cap-add PERFMON"),
        (errno.ENOSYS, "", "perf_event_open failed", "CONFIG_PERF_EVENTS"),
    ],
)
def test_a_refusal_says_why_and_what_helps(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    paranoid: str,
    reason: str,
    remedy: str,
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(perf_counters, "system_call", refuse)
    monkeypatch.setattr(perf_counters, "PARANOID", tmp_path / "paranoid")
    if paranoid:
        (tmp_path / "paranoid").write_text(paranoid + "\n")
    with pytest.raises(NoCountersError, match=reason) as caught:
        PerfCounters(os.getpid())
    assert remedy in caught.value.remedy
