"""The socket of a session, through which other processes of this machine use its tools.

It lies in the run directory, in a folder of mode 0700, beside a token.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingUnixStreamServer

from agent.record.claim import SESSION
from agent.session.tools import MOST_CALLS, MOST_CHARACTERS, Answer
from evaluator.errors import InfrastructureError
from evaluator.ipc.socket_file import connected, short_name
from evaluator.walls.folders import is_within_reach
from problems.errors import UsageError

Tell = Callable[[str], None]
Call = Callable[[str, Mapping[str, object], Tell, str], Answer]
"""From a tool, its arguments, who hears of its progress, and who asks."""
MOST_BYTES = 12 * MOST_CHARACTERS + 2**16
"""Of a request: JSON may take twelve bytes a character."""


@contextmanager
def open_door(run: Path, call: Call) -> Iterator[str]:
    """Answer those who come through the socket; yields the token that they show.

    Raises `UsageError` where candidates, which run as our user unless that is root, could read it.
    """
    folder = run / SESSION
    if os.geteuid() and is_within_reach(run):
        raise UsageError(f"candidates can read {run}; choose a folder elsewhere with -o")
    if folder.is_symlink():
        raise UsageError(f"{folder} is a link: remove it")
    token = secrets.token_urlsafe(32)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        folder.chmod(0o700)
        (folder / "socket").unlink(missing_ok=True)
        (folder / "token").unlink(missing_ok=True)
        with open(folder / "token", "x", opener=lambda p, flags: os.open(p, flags, 0o600)) as file:
            file.write(token)
    except OSError as error:
        raise UsageError(f"{folder} can't be used ({error}): remove it") from None

    class Visit(StreamRequestHandler):
        timeout = 30.0
        """Seconds for the rest of a request that has begun."""

        def handle(self) -> None:
            # Where this is no request of ours, or its sender has gone, nothing is answered.
            with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
                if len(line := self.rfile.readline(MOST_BYTES)) == MOST_BYTES:
                    self.send(kind="refused", text="The request is too long.")
                    return
                asked = json.loads(line)
                if not hmac.compare_digest(str(asked["token"]).encode(), token.encode()):
                    self.send(kind="refused", text="The token is wrong.")
                    return
                tool, given = str(asked["tool"]), dict(asked["arguments"])
                agent = str(asked["agent"]).encode(errors="replace").decode()  # it is kept
                said = call(tool, given, lambda text: self.send(progress=text), agent)
                self.send(kind=said.kind, text=said.text)

        def send(self, **message: str) -> None:
            with suppress(OSError):  # who asked has gone; the work goes on
                self.wfile.write(json.dumps(message).encode() + b"\n")

    class Door(ThreadingUnixStreamServer):
        daemon_threads = True
        request_queue_size = MOST_CALLS

    with short_name(folder / "socket") as name, Door(name, Visit) as door:
        threading.Thread(target=door.serve_forever, daemon=True).start()
        try:
            yield token
        finally:
            door.shutdown()
            (folder / "socket").unlink(missing_ok=True)


def is_open(run: Path) -> bool:
    """Whether a process listens in the run directory `run`."""
    try:
        connected(run / SESSION / "socket").close()
    except OSError:
        return False
    return True


def ask(run: Path, tool: str, arguments: Mapping[str, object], tell: Tell, agent: str) -> Answer:
    """What the process that has the session in `run` answers. Raises `UsageError` where there is
    none, and `InfrastructureError` where it ends before it has answered."""
    try:
        token = (run / SESSION / "token").read_text()
        connection = connected(run / SESSION / "socket")
    except OSError as error:
        raise UsageError(
            f"no session is open in {run} ({error.strerror}); begin it with kernel-refinery mcp"
        ) from None
    asked = {"token": token, "tool": tool, "arguments": arguments, "agent": agent}
    with connection, connection.makefile("rb") as lines, suppress(OSError):
        with suppress(OSError):  # it is too long, and the answer says so
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
