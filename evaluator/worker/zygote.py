"""The process that has imported torch already and forks a fresh worker for each candidate.

It runs no candidate code, no parallel torch operation and never touches CUDA: any of these would
break its children. `python -m evaluator.worker.zygote FD` speaks with the judge over FD.
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import signal
import socket
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import NoReturn

from evaluator.walls.layers import confine, enclose
from evaluator.walls.namespaces import Nursery
from evaluator.wire import Channel, ClosedError, Kind


def main(fd: int) -> None:
    """Fork a worker for each FORK, tell how a worker ended for each REAP."""
    channel = Channel(socket.socket(fileno=fd), takes_fds=True)
    layers = enclose()
    nursery = Nursery.open()
    if nursery is not None:
        layers.append("pid_namespace")
    allowed = os.sched_getaffinity(0)
    import_ahead()
    # libgomp has bound this thread as well, and all that are not its own would inherit that.
    os.sched_setaffinity(0, allowed)
    channel.send(Kind.FORKED, json.dumps({"layers": layers}).encode())
    while True:
        try:
            message = channel.receive()
        except ClosedError:
            return
        order = json.loads(message.payload)
        if message.kind is Kind.FORK:
            with nursery.born_apart() if nursery else nullcontext() as init:
                pid = os.fork()
                if pid == 0:
                    channel.close()
                    _become_worker(order, layers, *message.fds)
            for descriptor in message.fds:
                os.close(descriptor)
            channel.send(Kind.FORKED, json.dumps({"pid": pid, "init": init}).encode())
        elif message.kind is Kind.REAP:
            status = _reap(order["pid"], order["timeout_s"])
            channel.send(Kind.REAPED, json.dumps({"status": status}).encode())


def import_ahead() -> None:
    """Import what every worker needs, without waking CUDA, which would spoil all children."""
    import torch

    importlib.import_module("evaluator.worker.worker")
    asked = torch.cuda.is_available
    # On import this module asks whether there is a GPU, and asking initialises the driver.
    torch.cuda.is_available = lambda: True
    try:
        importlib.import_module("torch.utils.cpp_extension")
    finally:
        torch.cuda.is_available = asked


def _reap(pid: int, timeout_s: float) -> int | None:
    """How a child ended: its exit code, minus the signal, or None while it still runs."""
    deadline = time.monotonic() + timeout_s
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            return None
        time.sleep(0.002)


def _become_worker(order: dict[str, object], layers: list[str], talk: int, log: int) -> NoReturn:
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.dup2(log, 1)
        os.dup2(log, 2)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        faulthandler.enable(file=2, all_threads=False)
        scratch = Path(str(order["scratch"]))
        active = list(layers)
        if order["confine"]:
            memory = order["memory_bytes"]
            active += confine(
                scratch,
                memory_bytes=memory if isinstance(memory, int) else None,
                cpu_seconds=int(str(order["cpu_seconds"])),
                enclosed=layers,
            )
        else:
            os.setsid()
            os.chdir(scratch)
        from evaluator.worker.worker import Worker

        channel = Channel(socket.socket(fileno=talk), takes_fds=True)
        channel.send(Kind.READY, ",".join(active).encode())
        Worker(channel).serve()
    except ClosedError:
        os._exit(0)
    except BaseException:  # noqa: BLE001 - the boundary of the process
        import traceback

        traceback.print_exc()
        os._exit(3)
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
