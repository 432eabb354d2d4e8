"""A service that stands where a judge would: `python -m tests.evaluator.executor.judge_at_hand FD`.

It keeps a diary, one line for each question that it begins: its own pid and that of the actor.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from evaluator.errors import UnusableReferenceError
from evaluator.ipc.service import leave_with, serve


def answer(question: bytes) -> bytes:
    what, diary, *rest = question.decode().split()
    first = not Path(diary).exists()
    with Path(diary).open("a") as file:
        file.write(f"{os.getpid()} {os.getppid()}\n")
    match what:
        case "rest":
            time.sleep(float(rest[0]))
        case "die" if first or rest == ["always"]:
            os.kill(os.getpid(), signal.SIGKILL)
        case "refuse":
            raise UnusableReferenceError("it can't be run\nanywhere")
    return b"done"


if __name__ == "__main__":
    leave_with(int(sys.argv[1]))
    serve(int(sys.argv[1]), answer)
