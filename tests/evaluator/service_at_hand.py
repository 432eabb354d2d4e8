"""A small service to ask: `python -m tests.evaluator.service_at_hand FD`. Does what it is told."""

from __future__ import annotations

import os
import sys
import time

from evaluator.errors import DeviceError
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
        case ["sleep", seconds]:
            time.sleep(float(seconds))
    return question


if __name__ == "__main__":
    fd = int(sys.argv[1])
    leave_with(fd)
    serve(fd, answer)
