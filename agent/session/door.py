"""The socket of a session, through which other processes of this machine use its tools.

It lies in the run directory, in a folder of mode 0700, beside a token. Where candidates run under
their session's user, the run must not lie below a folder that they can read (docs/walls.md).
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingUnixStreamServer

from agent.record.claim import SESSION
from agent.session.tools import MOST_CHARACTERS, Answer
from evaluator.errors import InfrastructureError
from problems.errors import UsageError

Tell = Callable[[str], None]
Call = Callable[[str, Mapping[str, object], Tell, str], Answer]
"""From a tool, its arguments, who hears of its progress, and who asks."""
_MOST_BYTES = 6 * MOST_CHARACTERS + 2**16
"""Of a request: JSON may take six bytes a character."""
MOST_CALLS = 64
"""At a time."""


@contextmanager
def open_door(run: Path, call: Call) -> Iterator[str]:
    """Answer those who come through the socket; yields the token that they show."""
    folder = run / SESSION
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    (folder / "socket").unlink(missing_ok=True)
    token, free = secrets.token_urlsafe(32), threading.Semaphore(MOST_CALLS)
    (folder / "token").unlink(missing_ok=True)
    with open(folder / "token", "x", opener=lambda p, flags: os.open(p, flags, 0o600)) as file:
        file.write(token)

    class Visit(StreamRequestHandler):
        timeout = 30.0
        """Seconds for the rest of a request that has begun."""

        def handle(self) -> None:
            # What is no request of ours is left, and so is who has gone.
            with suppress(OSError, ValueError, KeyError, TypeError):
                asked = json.loads(self.rfile.readline(_MOST_BYTES))
                if not hmac.compare_digest(str(asked["token"]).encode(), token.encode()):
                    self.send(kind="refused", text="The token is wrong.")
                elif not free.acquire(blocking=False):
                    self.send(kind="refused", text="Too many calls are under way; wait.")
                else:
                    self.answer(asked)

        def answer(self, asked: dict[str, object]) -> None:
            try:
                tool, given, agent = asked["tool"], asked["arguments"], asked["agent"]
                assert isinstance(given, dict)
                said = call(str(tool), given, lambda text: self.send(progress=text), str(agent))
                self.send(kind=said.kind, text=said.text)
            finally:
                free.release()

        def send(self, **message: str) -> None:
            with suppress(OSError):  # who asked has gone; the work goes on
                self.wfile.write(json.dumps(message).encode() + b"\n")

    class Door(ThreadingUnixStreamServer):
        daemon_threads = True
        request_queue_size = MOST_CALLS

    with _short(folder) as name, Door(name, Visit) as door:
        threading.Thread(target=door.serve_forever, daemon=True).start()
        try:
            yield token
        finally:
            door.shutdown()
            (folder / "socket").unlink(missing_ok=True)


def is_open(run: Path) -> bool:
    """Whether a process listens in the run directory `run`."""
    try:
        _connected(run).close()
    except OSError:
        return False
    return True


def ask(run: Path, tool: str, arguments: Mapping[str, object], tell: Tell, agent: str) -> Answer:
    """What the process that has the session in `run` answers. Raises `UsageError` where there is
    none, and `InfrastructureError` where it ends before it has answered."""
    try:
        token, connection = (run / SESSION / "token").read_text(), _connected(run)
    except OSError as error:
        raise UsageError(
            f"no session is open in {run} ({error.strerror}); begin it with kernel-refinery mcp"
        ) from None
    asked = {"token": token, "tool": tool, "arguments": arguments, "agent": agent}
    with connection, connection.makefile("rb") as lines, suppress(OSError):
        connection.sendall(json.dumps(asked).encode() + b"\n")
        for line in lines:
            message = json.loads(line)
            if "text" in message:
                return Answer(message["text"], message["kind"])
            tell(message["progress"])
    raise InfrastructureError(
        f"the session in {run} ended before it answered; begin it with the same command, and ask"
        " again: nothing is charged twice"
    )


def _connected(run: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    try:
        with _short(run / SESSION) as name:
            connection.connect(name)
    except OSError:
        connection.close()
        raise
    return connection


@contextmanager
def _short(folder: Path) -> Iterator[str]:
    """A name of the socket that is short enough, wherever the folder lies."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/socket"
    finally:
        os.close(descriptor)
