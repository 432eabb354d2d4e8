"""What a candidate's process prints: read as it comes, its end kept, the rest dropped."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import threading

_KEPT_BYTES = 16384
_PIPE_BYTES = 2**20
_CHUNK_BYTES = 2**20


class Printed:
    """A pipe whose reader never stops: a chatty worker neither blocks nor fills a disk.

    What was read stays said. A process of the same user may read from the pipe as well (through
    /proc), so what a tool says beside a candidate that means harm is no proof of anything.
    """

    def __init__(self, most_bytes: int = _KEPT_BYTES) -> None:
        """`most_bytes` are kept. Raises `RuntimeError` where there is no thread to be had."""
        self._pipe, self.for_worker = os.pipe()
        os.set_blocking(self._pipe, False)
        with contextlib.suppress(OSError):
            fcntl.fcntl(self._pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._stop = os.eventfd(0, os.EFD_CLOEXEC)
        self._most_bytes = most_bytes
        self._kept = bytearray()
        self.cut = False
        """Whether more was printed than is kept."""
        self._reader = threading.Thread(target=self._read, name="printed", daemon=True)
        try:
            self._reader.start()
        except RuntimeError:
            for handle in (self._pipe, self.for_worker, self._stop):
                os.close(handle)
            raise

    def _read(self) -> None:
        poll = select.poll()
        poll.register(self._pipe, select.POLLIN)
        poll.register(self._stop, select.POLLIN)
        while self._take():
            if any(fd == self._stop for fd, _ in poll.poll()):
                # No more than the pipe holds: another process may still write.
                for _ in range(_PIPE_BYTES // 4096):
                    if not self._take():
                        break
                return

    def _take(self) -> bool:
        try:
            data = os.read(self._pipe, _CHUNK_BYTES)
        except BlockingIOError:
            return True
        # In one piece: a piece for each of many small writes would take many times as much.
        self._kept += data
        if (over := len(self._kept) - self._most_bytes) > 0:
            self.cut = True
            if over > self._most_bytes // 4:
                del self._kept[:over]
        return bool(data)

    def give_away(self) -> None:
        """The worker has its end now: what is left of it here is closed."""
        os.close(self.for_worker)

    def close(self) -> str:
        os.eventfd_write(self._stop, 1)
        self._reader.join()
        os.close(self._pipe)
        os.close(self._stop)
        return self._kept[-self._most_bytes :].decode(errors="replace")
