"""One of our processes that answers requests over a socket: both ends."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

from evaluator import errors
from evaluator.errors import BugError, InfrastructureError, JudgeDiedError
from evaluator.hardware.device_lock import HOLDER, own_holder
from evaluator.ipc.wire import Channel, ClosedError, Kind, Message, WireError, pair
from evaluator.walls.environment import python_module, python_path

_LAST_CHARACTERS = 300


class Service:
    """`python -m MODULE FD ARGUMENTS...`, started when first asked, or before. One question at a
    time."""

    def __init__(
        self, module: str, *arguments: str, told: Mapping[Kind, Callable[[str], None]] | None = None
    ) -> None:
        """`told` is called with what the service says before its answer, by kind."""
        self._module = module
        self._told = dict(told or {})
        self._arguments = arguments
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        self._changing = threading.RLock()
        self._sending = threading.Lock()
        # What it prints would go right through a live view.
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def ask(self, question: bytes) -> bytes:
        """The answer; raises the `InfrastructureError` that it met, or `JudgeDiedError` where it
        ended or sent what is no answer. The next question starts it anew then."""
        channel = self.start()
        try:
            with self._sending:
                channel.send(Kind.REQUEST, question)
            while (message := channel.receive()).kind in self._told:
                self._told[message.kind](message.payload.decode(errors="replace"))
            return answer_of(message)
        except WireError as error:
            raise self._died(channel, error) from None
        except BugError:
            self._stop(channel)
            raise

    def break_off(self) -> None:
        """Ask it to end, where it can, what it is at or will be asked next. For any thread."""
        with self._sending, contextlib.suppress(WireError):
            if (channel := self._channel) is not None:
                channel.send(Kind.BREAK_OFF)

    def hang_up(self) -> None:
        """End it, whatever it is doing; a pending `ask` raises `JudgeDiedError`. For any
        thread."""
        with self._changing:
            if self._channel is not None:
                self._channel.hang_up()

    def close(self) -> None:
        self._stop()
        self._log.close()

    def start(self) -> Channel:
        """Start the process, if it does not run: then the first question need not wait for that.

        Any thread may call this, also while another one asks.
        """
        with self._changing:
            if self._channel is not None and self._process is not None:
                if self._process.poll() is None:
                    return self._channel
                self._stop()
            self._channel, theirs = pair()
            with theirs:
                self._process = subprocess.Popen(
                    python_module(self._module, str(theirs.fileno()), *self._arguments),
                    pass_fds=[theirs.fileno()],
                    env=os.environ | {"PYTHONPATH": python_path(), HOLDER: own_holder()},
                    stdin=subprocess.DEVNULL,
                    stdout=self._log,
                    stderr=self._log,
                    # Ctrl-C is for the agent: it decides what happens to work in flight.
                    start_new_session=True,
                )
            return self._channel

    def _died(self, channel: Channel, error: WireError) -> JudgeDiedError:
        status = self._stop(channel)
        return JudgeDiedError(
            f"{self._module} ended (code {status}, {error!r}): {self._last_words()}"
        )

    def _last_words(self) -> str:
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, self._log.tell() - 2000))
        lines = self._log.read().decode(errors="replace").split("\n")
        spoken = [line.strip() for line in lines if line.strip()]
        return spoken[-1][-_LAST_CHARACTERS:] if spoken else "it printed nothing"

    def _stop(self, of: Channel | None = None, patience_s: float = 10.0) -> int | None:
        with self._changing:
            if of is not None and of is not self._channel:
                return None
            if self._channel is not None:
                self._channel.close()
                self._channel = None
            if self._process is None:
                return None
            process, self._process = self._process, None
        try:
            return process.wait(patience_s)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            return process.wait()


def serve(
    fd: int, answer: Callable[[bytes], bytes], break_off: Callable[[], None] = lambda: None
) -> None:
    """Answer until the other end is gone. Call `leave_with` before, as early as can be.

    An `InfrastructureError` is reported to the asking process; anything else is reported and
    printed, and ends this process. `break_off` is called where that is asked between questions.
    """
    channel = Channel(socket.socket(fileno=fd))
    while True:
        try:
            message = channel.receive()
        except ClosedError:
            return
        if message.kind is Kind.BREAK_OFF:
            break_off()
        elif not respond(channel, answer, message.payload):
            return


def respond(channel: Channel, answer: Callable[[bytes], bytes], question: bytes) -> bool:
    """Send the answer, or the error that it met; False where that error is our own bug."""
    try:
        channel.send(Kind.RESPONSE, answer(question))
    except InfrastructureError as error:
        channel.send(Kind.ERROR, f"{type(error).__name__}\n{error}".encode())
    except Exception as error:  # noqa: BLE001 - the boundary of the process, which records
        traceback.print_exc()
        channel.send(Kind.ERROR, f"{BugError.__name__}\n{error!r} in {place_of(error)}".encode())
        return False
    return True


def answer_of(message: Message) -> bytes:
    """What `respond` sent; raises the `InfrastructureError` that it reports, or `WireError`."""
    if message.kind is Kind.RESPONSE:
        return message.payload
    if message.kind is not Kind.ERROR:
        raise WireError(f"{message.kind.name} is no answer")
    name, _, text = message.payload.decode(errors="replace").partition("\n")
    raise errors.named(name, text)


def place_of(error: BaseException) -> str:
    """Where in our own code an error arose: `evaluator/judge/judge.py:83`."""
    root = Path(__file__).parents[2]
    frames = [
        f"{Path(frame.filename).relative_to(root)}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(root) and "site-packages" not in frame.filename
    ]
    return frames[-1] if frames else "code that is not ours"


def leave_with(fd: int) -> None:
    """From now on this process ends with the other end of `fd`, whatever it is at."""
    threading.Thread(target=_leave_with, args=(fd,), daemon=True).start()


def _leave_with(fd: int) -> None:
    poll = select.poll()
    poll.register(fd, select.POLLRDHUP)
    while not poll.poll():
        pass
    # The zygote sees its channel close and ends its workers.
    os._exit(0)
