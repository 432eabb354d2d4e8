"""A small service to ask: `python -m tests.evaluator.service_at_hand FD`. Does what it is told.

Where a question names a diary, a line goes there first: its own pid and that of its parent.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from evaluator.errors import DeviceError, UnusableReferenceError
from evaluator.ipc.service import leave_with, serve
from evaluator.ipc.wire import Kind


def answer(question: bytes) -> bytes:
    match question.decode().split():
        case ["pid"]:
            return str(os.getpid()).encode()
        case ["raw", text]:
            os.write(int(sys.argv[1]), text.encode() * 12)
        case ["unasked"]:
            os.write(int(sys.argv[1]), b"KRf1" + Kind.FORKED.to_bytes(4, "little") + bytes(4))
        case ["device"]:
            raise DeviceError("the device\nis gone")
        case ["bug"]:
            raise ZeroDivisionError("a bug")
        case ["leave", code]:
            print("before\nmy last words\n", flush=True)
            os._exit(int(code))
        case ["sleep", seconds, *diary]:
            _note(*diary)
            time.sleep(float(seconds))
        case ["refuse", diary]:
            _note(diary)
            raise UnusableReferenceError("it can't be run\nanywhere")
        case ["die", diary]:
            _note(diary)
            os.kill(os.getpid(), signal.SIGKILL)
    return question


def _note(*diary: str) -> None:
    for each in diary:
        with Path(each).open("a") as file:
            file.write(f"{os.getpid()} {os.getppid()}\n")


if __name__ == "__main__":
    fd = int(sys.argv[1])
    leave_with(fd)
    serve(fd, answer)
