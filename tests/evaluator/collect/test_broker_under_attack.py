"""What a target can do to the process that serves it, by how it asks."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

import pytest

from evaluator.collect.target.broker import Broker
from evaluator.ipc.build_request import BuildOutcome, BuildRequest
from evaluator.ipc.wire import Channel, ClosedError, Kind, WireError, WireTimeoutError, pair

REFUSED = BuildRequest(name="no name").encode()
"""Answered at once."""
LONG = BuildRequest(name="no name" * 2**18).encode()
"""Its answer names it, and fits into no socket's buffer."""


def served(asks: Callable[[Channel], None], timeout_s: float) -> float:
    mine, theirs = pair()

    def target() -> None:
        # It ends when the owner has hung up.
        with theirs, contextlib.suppress(ClosedError, OSError):
            asks(Channel(theirs))

    asking = threading.Thread(target=target)
    asking.start()
    try:
        with Broker("cpu") as broker:
            return broker.serve(mine, timeout_s)
    finally:
        mine.close()
        asking.join()


def test_who_never_stops_asking_gets_no_more_time() -> None:
    def asks(owner: Channel) -> None:
        while True:
            owner.send(Kind.BUILD, REFUSED)
            owner.receive()

    with pytest.raises(WireTimeoutError):
        served(asks, 0.5)


def test_who_does_not_read_the_answer_holds_nobody_up() -> None:
    def asks(owner: Channel) -> None:
        while True:
            owner.send(Kind.BUILD, LONG)

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
