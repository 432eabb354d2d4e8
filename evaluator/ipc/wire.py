"""The bytes that lie between judge and worker: framed messages over a Unix socket.

What the worker sends is never Python objects: a fixed binary header, then raw bytes whose length
is bounded by the kind of message. What the judge sends may be JSON, because the judge is trusted.
A worker that dies closes its end, which the judge sees at once; that is why the two talk over a
socket rather than through a futex in shared memory.
"""

from __future__ import annotations

import errno
import select
import socket
import struct
import time
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum

_HEADER = struct.Struct("<4sII")  # magic, kind, length of payload
_MAGIC = b"KRf1"
_MAX_FDS = 8


class Kind(IntEnum):
    # judge -> worker
    LOAD = 1
    BUILT = 2
    CONSTRUCT = 3
    PREPARE = 4
    GO = 5
    RELEASE = 6
    WARM = 8
    HELD = 9
    # worker -> judge
    READY = 15
    BUILD = 16
    IMPORTED = 17
    CONSTRUCTED = 18
    PREPARED = 19
    RETURNED = 20
    DONE = 21
    FAILED = 22
    WARMED = 24
    DEVICE = 25
    ENQUEUED = 26
    # judge <-> zygote, executor <-> judge (both ends trusted)
    FORK = 32
    FORKED = 33
    REAP = 34
    REAPED = 35
    REQUEST = 36
    RESPONSE = 37
    ERROR = 38
    WAITS = 39
    BREAK_OFF = 40
    STAGE = 41


_LIMITS = {
    Kind.READY: 512,
    Kind.BUILD: 32 * 2**20,
    Kind.IMPORTED: 0,
    Kind.CONSTRUCTED: 5 + 512,
    Kind.PREPARED: 0,
    Kind.RETURNED: 32768,
    Kind.DONE: 32768,
    Kind.FAILED: 65536,
    Kind.WARMED: 0,
    Kind.DEVICE: 0,
    Kind.ENQUEUED: 0,
}
_TRUSTED_LIMIT = 256 * 2**20


class WireError(Exception):
    """The other end broke the protocol."""


class ClosedError(WireError):
    """The other end is gone."""


class WireTimeoutError(WireError):
    """Nothing came in time."""


@dataclass(frozen=True)
class Message:
    kind: Kind
    payload: bytes
    fds: tuple[int, ...] = ()


class Channel:
    """One end of a conversation. Not safe for several threads at once.

    File descriptors are taken only where `takes_fds` says so: what an untrusted end attaches to
    its messages is dropped by the kernel.
    """

    def __init__(self, end: socket.socket, *, takes_fds: bool = False) -> None:
        self._socket = end
        self._takes_fds = takes_fds

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(
        self,
        kind: Kind,
        payload: bytes = b"",
        fds: tuple[int, ...] = (),
        *,
        timeout_s: float | None = None,
    ) -> None:
        """Send one message; raises `ClosedError` if nobody listens, and `WireTimeoutError` if
        somebody does not read it in time, after which nothing more can be said."""
        head = _HEADER.pack(_MAGIC, kind, len(payload))
        try:
            self._socket.settimeout(timeout_s)
            if fds:
                socket.send_fds(self._socket, [head], list(fds))
                self._socket.sendall(payload)
            else:
                self._socket.sendall(head + payload)
        except TimeoutError:
            raise WireTimeoutError from None
        except OSError as error:
            raise _closed(error) from None

    def spin(self, seconds: float) -> None:
        """Wait for a message without going to sleep, for at most that long; it isn't taken."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not select.select([self._socket], [], [], 0)[0]:
            pass

    def ready(self, timeout_s: float) -> bool:
        """Wait for a message, or until either end has hung up; it isn't taken."""
        if self._socket.fileno() < 0:
            return True
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(1000 * timeout_s))

    def receive(self, timeout_s: float | None = None, most_bytes: int | None = None) -> Message:
        """The next message; raises `WireTimeoutError`, `ClosedError` or `WireError`."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        head, fds = self._exactly(_HEADER.size, deadline, with_fds=self._takes_fds)
        magic, number, length = _HEADER.unpack(head)
        if magic != _MAGIC:
            raise WireError("not a message")
        try:
            kind = Kind(number)
        except ValueError:
            raise WireError(f"unknown kind {number}") from None
        if length > (most_bytes or _LIMITS.get(kind, _TRUSTED_LIMIT)):
            raise WireError(f"{kind.name} of {length} bytes is too long")
        payload, _ = self._exactly(length, deadline, with_fds=False)
        return Message(kind, payload, tuple(fds))

    def hang_up(self) -> None:
        """End the conversation: who waits at either end sees it. For any thread."""
        with suppress(OSError):  # the other end is gone, or this one was closed
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.close()

    def _exactly(
        self, count: int, deadline: float | None, *, with_fds: bool
    ) -> tuple[bytes, list[int]]:
        parts: list[bytes] = []
        fds: list[int] = []
        while count:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise WireTimeoutError
            try:
                self._socket.settimeout(left)
                if with_fds:
                    data, got, _, _ = socket.recv_fds(self._socket, count, _MAX_FDS)
                    fds.extend(got)
                else:
                    data = self._socket.recv(min(count, 2**20))
            except TimeoutError:
                raise WireTimeoutError from None
            except OSError as error:
                raise _closed(error) from None
            if not data:
                raise ClosedError("end of file")
            parts.append(data)
            count -= len(data)
        return b"".join(parts), fds


def _closed(error: OSError) -> Exception:
    """What it means where the other end, or this one, has hung up; else the same error."""
    gone = {errno.EPIPE, errno.ECONNRESET, errno.EBADF}
    return ClosedError(str(error)) if error.errno in gone else error


def pair(*, takes_fds: bool = False) -> tuple[Channel, socket.socket]:
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    return Channel(mine, takes_fds=takes_fds), theirs
