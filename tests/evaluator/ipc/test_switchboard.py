"""Several questions at a time to one process, which may end over any of them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evaluator.errors import JudgeDiedError
from evaluator.ipc.switchboard import Switchboard
from tests.evaluator.processes import is_running
from tests.waiting import once


@pytest.fixture
def switchboard() -> Iterator[Switchboard]:
    switchboard = Switchboard("tests.evaluator.lines_at_hand")
    yield switchboard
    switchboard.close()


def test_a_short_question_does_not_wait_for_a_long_one(switchboard: Switchboard) -> None:
    with ThreadPoolExecutor(1) as pool:
        long = pool.submit(switchboard.ask, b"sleep 2")
        once(lambda: switchboard.pid)
        answers = [switchboard.ask(text) for text in (b"one", b"two", b"pid")]
        assert not long.done()
        assert answers == [b"one", b"two", str(switchboard.pid).encode()]
        assert long.result() == b"sleep 2"


def test_a_process_that_ends_is_told_to_all_who_wait_and_replaced(
    switchboard: Switchboard, tmp_path: Path
) -> None:
    pid = switchboard.ask(b"pid")
    diary = tmp_path / "diary"
    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(switchboard.ask, f"sleep 60 {diary}".encode()) for _ in range(3)]
        # One that came later would be asked of the next process.
        once(lambda: diary.exists() and len(diary.read_text().splitlines()) == 3)
        with pytest.raises(JudgeDiedError, match=r"lines_at_hand ended"):
            switchboard.ask(b"leave 7")
        for one in waiting:
            with pytest.raises(JudgeDiedError, match=r"lines_at_hand ended"):
                one.result(20)
    assert switchboard.ask(b"pid") != pid


def test_a_process_that_is_too_slow_is_ended(switchboard: Switchboard) -> None:
    pid = int(switchboard.ask(b"pid"))
    with pytest.raises(TimeoutError, match=r"^no answer in 0\.2 s$"):
        switchboard.ask(b"sleep 60", timeout_s=0.2)
    assert not is_running(pid)
    with pytest.raises(JudgeDiedError, match="RESPONSE of 6 bytes is too long"):
        switchboard.ask(b"and on", most_bytes=5)
    assert switchboard.ask(b"and on", most_bytes=6) == b"and on"


def test_closing_ends_it_whatever_it_is_at(switchboard: Switchboard, tmp_path: Path) -> None:
    pid = int(switchboard.ask(b"pid"))
    diary = tmp_path / "diary"
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(switchboard.ask, f"sleep 60 {diary}".encode())
        once(diary.exists)
        switchboard.close()
        with pytest.raises(JudgeDiedError):
            waiting.result(20)
    assert not is_running(pid)
