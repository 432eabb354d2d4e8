"""Whose turn it is on a device, and with a host's driver."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest

from evaluator import device_lock
from evaluator.device_lock import context_turn, ncu_lock
from evaluator.devices import DeviceInfo
from evaluator.host_lock import LOCKS, host_lock


@pytest.fixture(autouse=True)
def _own_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LOCKS, str(tmp_path))


@pytest.fixture
def inside() -> Iterator[Callable[[Callable[[], AbstractContextManager[None]]], threading.Event]]:
    """Starts threads that enter a lock: the event is set once one is inside."""
    threads = []

    def begin(lock: Callable[[], AbstractContextManager[None]]) -> threading.Event:
        entered = threading.Event()

        def enter() -> None:
            with lock():
                entered.set()

        threads.append(threading.Thread(target=enter))
        threads[-1].start()
        return entered

    yield begin
    for thread in threads:
        thread.join()


FIRST = DeviceInfo("NVIDIA H200", "cuda", uuid="GPU-1")
SECOND = DeviceInfo("NVIDIA H200", "cuda", uuid="GPU-2")


@pytest.mark.parametrize("lock", [partial(ncu_lock, FIRST), context_turn])
def test_one_at_a_time(lock, inside) -> None:
    with lock():
        other = inside(lock)
        assert not other.wait(0.3)
    assert other.wait(30.0)


def test_two_devices_are_profiled_at_a_time(inside) -> None:
    with ncu_lock(FIRST):
        assert inside(partial(ncu_lock, SECOND)).wait(30.0)


def test_nobody_waits_for_ever_for_a_turn_at_contexts(inside, monkeypatch) -> None:
    monkeypatch.setattr(device_lock, "_MOST_TURNS_S", 0.1)
    with context_turn():
        assert inside(context_turn).wait(30.0)


def test_a_lock_is_there_for_other_users_too(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        with host_lock("x"):
            (file,) = tmp_path.iterdir()
            assert file.stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(before)


def test_only_what_spares_work_goes_on_without_a_lock(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv(LOCKS, str(tmp_path / "nowhere"))
    with host_lock("x", most_s=60.0):
        pass
    with pytest.raises(FileNotFoundError), host_lock("x"):
        pass
