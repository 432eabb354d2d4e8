"""The judge's process: answers evaluation requests over a socket until its executor hangs up.

`python -m evaluator.judge.server FD DEVICE CACHE`
"""

from __future__ import annotations

import os
import select
import socket
import sys
import threading
import traceback
from pathlib import Path

# Before torch is loaded: libgomp's idle threads would spin and disturb the worker that is timed.
os.environ["OMP_WAIT_POLICY"] = "passive"

import torch

from evaluator.build.builder import Builder
from evaluator.devices import describe
from evaluator.errors import InfrastructureError
from evaluator.evaluation import EvaluationRequest
from evaluator.judge.judge import Judge
from evaluator.wire import Channel, ClosedError, Kind


def main(fd: int, device: str, cache: Path) -> None:
    """Serve until the other end is gone."""
    channel = Channel(socket.socket(fileno=fd))
    where = torch.device(device)
    if where.type == "cuda":
        torch.cuda.set_device(where)
        torch.zeros(1, device=where)
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
    threading.Thread(target=_leave_with, args=(channel.fileno(),), daemon=True).start()
    builder = Builder(cache, cuda_arch=describe(device).cuda_architecture)
    threading.Thread(target=_warm_up, args=(builder,), daemon=True).start()
    judge = Judge(where, builder)
    try:
        while True:
            try:
                message = channel.receive()
            except ClosedError:
                return
            try:
                request = EvaluationRequest.model_validate_json(message.payload)
                answer = judge.evaluate(request).model_dump_json(by_alias=True)
                channel.send(Kind.RESPONSE, answer.encode())
            except InfrastructureError as error:
                channel.send(Kind.ERROR, f"{type(error).__name__}\n{error}".encode())
            except Exception as error:  # noqa: BLE001 - the boundary of the process, which records
                traceback.print_exc()
                channel.send(Kind.ERROR, f"InfrastructureError\n{error!r} in the judge".encode())
                return
    finally:
        judge.close()


def _warm_up(builder: Builder) -> None:
    """Compile what the first build would wait for, while the first problem is set up."""
    try:
        builder.warm_up()
    except InfrastructureError as error:
        # The first build meets the same error and tells it where it matters.
        print(f"warm-up of the builder: {error}", file=sys.stderr)


def _leave_with(fd: int) -> None:
    """End this process as soon as the executor's is gone, also in the middle of an evaluation.

    The zygote sees its channel close and takes the workers with it.
    """
    poll = select.poll()
    poll.register(fd, select.POLLRDHUP)
    while not poll.poll():
        pass
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
