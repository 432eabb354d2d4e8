from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from socket import socket

import pytest

from evaluator.builder.builder import Builder
from evaluator.collect.code.static_code import inspect_loops
from evaluator.collect.target.broker import Broker
from evaluator.hardware.device_lock import LOCKS, device_lock
from evaluator.ipc.build_request import BuildRequest
from evaluator.ipc.wire import Channel, Kind, WireTimeoutError, pair
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


def test_what_is_looked_at_after_a_profile_need_not_be_in_the_cache_any_more(
    line: tuple[Channel, socket], tmp_path: Path, shared_cache: Path
) -> None:
    channel, theirs = line
    kept = tmp_path / "kept"
    kept.mkdir()
    with ThreadPoolExecutor(1) as pool, Broker("cpu", kept=kept) as broker:
        serving = pool.submit(broker.serve, channel, 120.0)
        outcome = build_stub.over(Channel(theirs, takes_fds=True))(ASKED)
        assert outcome.ok
        assert Path(outcome.library).read_bytes()[:4] == b"\x7fELF"
        theirs.close()
        assert 0 < serving.result() < 120
    shutil.rmtree(Path(Builder(shared_cache).build(ASKED).library).parent)
    assert [inspect_loops(library) is not None for library in broker.libraries] == [True]


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
