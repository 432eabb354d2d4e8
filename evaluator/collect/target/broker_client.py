"""The target's end of the line to its `Broker`, which does what a target may not do itself."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from evaluator.ipc.wire import Channel, Kind
from evaluator.worker import build_stub

_SOCKET = "broker"


class BrokerClient:
    def __init__(self, end: socket.socket) -> None:
        self._channel = Channel(end, takes_fds=True)
        self.build = build_stub.over(self._channel)

    def hold_device(self) -> None:
        self._channel.send(Kind.DEVICE)
        self._channel.receive()


def connect_to_broker(folder: Path) -> BrokerClient:
    """To the broker that listens in `folder`. Raises `OSError`."""
    end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with _short(folder) as name:
        end.connect(name)
    return BrokerClient(end)


def listening(folder: Path) -> socket.socket:
    """The broker's socket in `folder`, for `connect_to_broker`. Raises `OSError`."""
    end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _short(folder) as name:
            end.bind(name)
        # The folder belongs to the target's user by now: no other user can enter it.
        (folder / _SOCKET).chmod(0o666)
        end.listen(1)
    except BaseException:
        end.close()
        raise
    return end


@contextlib.contextmanager
def _short(folder: Path) -> Iterator[str]:
    """A name for the socket that is short enough, however deep the folder lies."""
    handle = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{handle}/{_SOCKET}"
    finally:
        os.close(handle)
