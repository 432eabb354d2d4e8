"""A process to ask over several lines: `python -m tests.evaluator.lines_at_hand FD`."""

from __future__ import annotations

import os
import sys
import time

from evaluator.errors import DeviceError
from evaluator.ipc.switchboard import serve_lines


def answer(question: bytes) -> bytes:
    match question.decode().split():
        case ["pid"]:
            return str(os.getpid()).encode()
        case ["sleep", seconds]:
            time.sleep(float(seconds))
        case ["leave", code]:
            print("my last words", flush=True)
            os._exit(int(code))
        case ["device"]:
            raise DeviceError("the device\nis gone")
        case ["bug"]:
            raise ZeroDivisionError("a bug")
    return question


if __name__ == "__main__":
    serve_lines(int(sys.argv[1]), answer)
