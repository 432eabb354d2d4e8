from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from socket import socket

import pytest

from evaluator.collect.code.static_code import inspect_loops
from evaluator.collect.target.broker import Broker
from evaluator.hardware.device_lock import LOCKS, device_lock
from evaluator.ipc.build_request import BuildOutcome, BuildRequest
from evaluator.ipc.wire import Channel, ClosedError, Kind, WireError, WireTimeoutError, pair
from evaluator.worker import build_stub

BODY = 'extern "C" int answer() { return 42; }'
ASKED = BuildRequest("bare", (BODY,), implicit_headers=False)


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Channel, socket]]:
    """The broker's end, and the end of the process that asks."""
    monkeypatch.setenv(LOCKS, str(tmp_path))
    mine, theirs = pair()
    with closing(mine), theirs:
        yield mine, theirs


@pytest.mark.usefixtures("shared_cache")
def test_what_was_handed_out_is_looked_at_after_a_profile(line: tuple[Channel, socket]) -> None:
    channel, theirs = line
    with ThreadPoolExecutor(1) as pool, Broker("cpu") as broker:
        serving = pool.submit(broker.serve, channel, 120.0)
        outcome = build_stub.over(Channel(theirs, takes_fds=True))(ASKED)
        assert outcome.ok
        assert Path(outcome.library).read_bytes()[:4] == b"\x7fELF"
        theirs.close()
        assert 0 < serving.result() < 120
    assert inspect_loops(broker.libraries) is not None


def test_the_device_is_the_targets_to_the_end_and_waiting_for_it_costs_no_time(
    line: tuple[Channel, socket],
) -> None:
    channel, theirs = line
    with ThreadPoolExecutor(2) as pool:
        with Broker("cpu") as broker:
            with device_lock("cpu"):
                serving = pool.submit(broker.serve, channel, 1.0)
                asking = Channel(theirs)
                asking.send(Kind.DEVICE)
                holding = pool.submit(asking.receive)
                time.sleep(1.5)
                assert not holding.done()
            holding.result(20)
            other = pool.submit(device_lock("cpu").__enter__)
            time.sleep(0.2)
            theirs.close()
            assert serving.result() > 0.3
            assert not other.done()
        other.result(20)


def test_one_that_says_nothing_is_waited_for_as_long_as_it_may_run(
    line: tuple[Channel, socket],
) -> None:
    channel, _ = line
    with Broker("cpu") as broker:
        with pytest.raises(WireTimeoutError):
            broker.serve(channel, 0.3)
        assert broker.serve(channel, 60.0, lambda: False) > 50


REFUSED = BuildRequest(name="no name").encode()
"""Answered at once."""
LONG = BuildRequest(name="no name" * 2**18).encode()
"""Its answer names it, and fits into no socket's buffer."""


def served(asks: Callable[[Channel], None], timeout_s: float) -> float:
    mine, theirs = pair()

    def target() -> None:
        # It ends when the owner has hung up.
        with theirs, suppress(ClosedError, OSError):
            asks(Channel(theirs))

    asking = threading.Thread(target=target)
    asking.start()
    try:
        with Broker("cpu") as broker:
            return broker.serve(mine, timeout_s)
    finally:
        mine.close()
        asking.join()


@pytest.mark.parametrize(("asked", "reads"), [(REFUSED, True), (LONG, False)])
def test_who_never_stops_asking_or_does_not_read_gets_no_more_time(
    asked: bytes, reads: bool
) -> None:
    def asks(owner: Channel) -> None:
        while True:
            owner.send(Kind.BUILD, asked)
            if reads:
                owner.receive()

    with pytest.raises(WireTimeoutError):
        served(asks, 0.5)


def test_who_asks_for_the_device_twice_is_not_answered() -> None:
    def asks(owner: Channel) -> None:
        for _ in range(2):
            owner.send(Kind.DEVICE)
            owner.receive()

    with pytest.raises(WireError, match="DEVICE out of turn"):
        served(asks, 20)


@pytest.mark.parametrize("of", ["name", "flag"])
def test_what_it_is_told_of_a_long_text_is_short(of: str) -> None:
    # Four characters each, where it is quoted.
    text = "\1" * 2**21
    request = BuildRequest(
        name=text if of == "name" else "k", cflags=(text,) if of == "flag" else ()
    )
    logs: list[str] = []

    def asks(owner: Channel) -> None:
        owner.send(Kind.BUILD, request.encode())
        logs.append(BuildOutcome.decode(owner.receive().payload).log)

    assert served(asks, 20) > 0
    assert logs[0].startswith("error: ")
    assert len(logs[0]) < 2**17
