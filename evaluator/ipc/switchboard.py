"""One of our processes that answers several questions at a time: both ends.

A question comes over a line of its own: a socket that is passed through the one over which the
process was started. So answers need no sorting, and a process that dies ends every line.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

from evaluator.errors import JudgeDiedError
from evaluator.ipc.service import Service, answer_of, respond
from evaluator.ipc.wire import Channel, ClosedError, Kind, WireError, WireTimeoutError, pair


class Switchboard(Service):
    """Like `Service`, but safe to ask from several threads, which don't wait for each other."""

    def __init__(self, module: str, *arguments: str) -> None:
        super().__init__(module, *arguments)
        self._lock = threading.Lock()

    def ask(
        self, question: bytes, timeout_s: float | None = None, most_bytes: int | None = None
    ) -> bytes:
        """The answer, of at most `most_bytes`; raises as `Service.ask`, and `TimeoutError` once it
        has ended a process that did not answer in time."""
        mine, theirs = pair()
        with self._lock, theirs:
            switch = self.start()
            try:
                switch.send(Kind.REQUEST, b"", (theirs.fileno(),))
            except WireError as error:
                mine.close()
                raise self._died(switch, error) from None
        try:
            mine.send(Kind.REQUEST, question, timeout_s=timeout_s)
            return answer_of(mine.receive(timeout_s, most_bytes))
        except WireTimeoutError:
            with self._lock:
                self._stop(patience_s=0.0)
            raise TimeoutError(f"no answer in {timeout_s:g} s") from None
        except WireError as error:
            with self._lock:
                if switch is self._channel:
                    raise self._died(switch, error) from None
            raise JudgeDiedError(f"{self._module} ended before it answered") from None
        finally:
            mine.close()

    def close(self) -> None:
        with self._lock:
            super().close()


def serve_lines(fd: int, answer: Callable[[bytes], bytes]) -> None:
    """Answer each question in a thread of its own, until the other end is gone."""
    switch = Channel(socket.socket(fileno=fd), takes_fds=True)
    while True:
        try:
            message = switch.receive()
        except ClosedError:
            return
        for line in message.fds:
            threading.Thread(target=_serve_line, args=(line, answer), daemon=True).start()


def _serve_line(fd: int, answer: Callable[[bytes], bytes]) -> None:
    line = Channel(socket.socket(fileno=fd))
    try:
        respond(line, answer, line.receive().payload)
    except ClosedError:
        pass  # the asking process is gone
    finally:
        line.close()
