"""A process of ours that answers, in every way in which it can fail to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator.errors import BugError, DeviceError, InfrastructureError, JudgeDiedError
from evaluator.ipc.service import Service, answer_of
from evaluator.ipc.wire import Kind, Message
from tests.evaluator.processes import is_running, still_running


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service("tests.evaluator.service_at_hand")
    yield service
    service.close()


def test_one_process_answers_every_question(service: Service) -> None:
    assert service.pid is None
    assert service.ask(b"hello") == b"hello"
    assert {service.ask(b"pid") for _ in range(3)} == {str(service.pid).encode()}
    long = os.urandom(3 * 2**20).hex().encode()
    assert service.ask(long) == long


def test_started_ahead_it_is_the_process_that_answers(service: Service) -> None:
    service.start()
    pid = service.pid
    assert pid is not None and is_running(pid)
    service.start()
    assert service.pid == pid
    assert service.ask(b"pid") == str(pid).encode()


def test_a_question_that_failed_ends_no_process_but_its_own(service: Service) -> None:
    service.start()
    old, pid = service._channel, service.pid
    assert old is not None and pid is not None
    os.kill(pid, signal.SIGKILL)
    assert not still_running([pid])
    service.start()
    assert service._stop(old) is None
    assert service.pid != pid
    assert service.ask(b"pid") == str(service.pid).encode()


def test_a_failure_of_ours_is_raised_as_what_it_is_and_the_process_stays(service: Service) -> None:
    pid = int(service.ask(b"pid"))
    with pytest.raises(DeviceError, match=r"^the device\nis gone$"):
        service.ask(b"device")
    assert int(service.ask(b"pid")) == pid


def test_a_bug_is_told_with_its_place_and_the_next_question_meets_a_fresh_process(
    service: Service,
) -> None:
    pid = int(service.ask(b"pid"))
    told = r"^ZeroDivisionError\('a bug'\) in tests/evaluator/service_at_hand\.py:\d+$"
    with pytest.raises(InfrastructureError, match=told):
        service.ask(b"bug")
    assert not is_running(pid)
    assert int(service.ask(b"pid")) != pid


@pytest.mark.parametrize(
    ("question", "told"),
    [
        (b"leave 7", r"ended \(code 7, .*end of file.*: my last words$"),
        (b"raw !", "not a message"),
        (b"unasked", "FORKED is no answer"),
    ],
)
def test_no_answer_or_a_malformed_one_ends_it(service: Service, question: bytes, told: str) -> None:
    pid = int(service.ask(b"pid"))
    with pytest.raises(JudgeDiedError, match=told):
        service.ask(question)
    assert service.pid is None
    assert not is_running(pid)
    assert service.ask(b"and on") == b"and on"
    assert service.pid not in (None, pid)


def test_an_error_that_is_no_text_is_told_as_far_as_it_is() -> None:
    with pytest.raises(BugError, match=r"^why \ufffd$"):
        answer_of(Message(Kind.ERROR, b"BugError\nwhy \xff"))


def test_killed_while_it_is_asked(service: Service) -> None:
    pid = int(service.ask(b"pid"))
    killer = threading.Timer(0.5, os.kill, (pid, signal.SIGKILL))
    killer.start()
    with pytest.raises(JudgeDiedError, match=r"code -9.*it printed nothing"):
        service.ask(b"sleep 60")
    killer.join()


ASKS = """
from evaluator.ipc.service import Service
service = Service("tests.evaluator.service_at_hand")
print(service.ask(b"pid").decode(), flush=True)
service.ask(b"sleep 60")
"""


def test_it_ends_at_once_with_the_process_that_asks() -> None:
    asking = subprocess.Popen(
        [sys.executable, "-c", ASKS],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
        stdout=subprocess.PIPE,
        text=True,
    )
    with asking:
        assert asking.stdout is not None
        pid = int(asking.stdout.readline())
        assert is_running(pid)
        asking.kill()
    assert not still_running([pid])
