"""Whose turn it is on a device."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest

from evaluator.errors import DeviceError
from evaluator.hardware.device_lock import LOCKS, host_lock, ncu_lock
from evaluator.hardware.devices import DeviceInfo
from evaluator.walls.environment import python_path


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


def test_one_at_a_time(inside) -> None:
    with ncu_lock(FIRST):
        other = inside(partial(ncu_lock, FIRST))
        assert not other.wait(0.3)
    assert other.wait(30.0)


def test_two_devices_are_profiled_at_a_time(inside) -> None:
    with ncu_lock(FIRST):
        assert inside(partial(ncu_lock, SECOND)).wait(30.0)


def test_what_only_spares_work_does_not_wait_for_ever(inside) -> None:
    with host_lock("x"):
        assert inside(partial(host_lock, "x", most_s=0.1)).wait(30.0)


def test_a_lock_is_there_for_other_users_too(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        with host_lock("x"):
            (file,) = tmp_path.iterdir()
            assert file.stat().st_mode & 0o777 == 0o666
    finally:
        os.umask(before)


def test_only_what_spares_work_goes_on_without_a_lock(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv(LOCKS, str(tmp_path / "nowhere"))
    with host_lock("x", most_s=60.0):
        pass
    told = rf"^the lock cannot be made .*: set {LOCKS} to a folder"
    with pytest.raises(DeviceError, match=told), host_lock("x"):
        pass


def test_where_temporary_files_go_says_nothing_of_the_locks(monkeypatch, tmp_path: Path) -> None:
    """Two users, or two jobs of one, are kept apart on a device all the same."""
    monkeypatch.delenv(LOCKS)
    program = "from evaluator.hardware.device_lock import lock_folder; print(lock_folder())"
    for folder in (tmp_path, Path("/var/tmp")):
        found = subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"TMPDIR": str(folder), "PYTHONPATH": python_path()},
            capture_output=True,
            text=True,
            check=True,
        )
        assert found.stdout == "/tmp\n"


def test_a_link_in_a_locks_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "kernel-refinery-x.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DeviceError, match="symbolic"), host_lock("x"):
        pass
    assert not (tmp_path / "elsewhere").exists()


AS_NOBODY = """
import os, sys
from evaluator.hardware.device_lock import host_lock

os.setresgid(*[65534] * 3)
os.setresuid(*[65534] * 3)
for _ in sys.stdin:
    with host_lock("x"):
        print("taken", flush=True)
        sys.stdin.readline()
    print("left", flush=True)
"""


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], str]]:
    """Another user, told to take the lock x of a folder as /tmp is, and told again to leave it."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o1777)
        monkeypatch.setenv(LOCKS, folder)
        with subprocess.Popen(
            [sys.executable, "-c", AS_NOBODY],
            env=os.environ | {"PYTHONPATH": python_path()},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdin is not None and process.stdout is not None

            def told() -> str:
                print(file=process.stdin, flush=True)
                return process.stdout.readline().strip()

            yield told
            process.stdin.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("first", ["root", "nobody"])
def test_users_keep_each_other_out_whichever_made_the_lock(inside, nobody, first) -> None:
    if first == "root":
        with host_lock("x"):
            pass
    assert nobody() == "taken"
    mine = inside(partial(host_lock, "x"))
    assert not mine.wait(0.3)
    assert nobody() == "left"
    assert mine.wait(30.0)
