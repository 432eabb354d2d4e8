"""The process that has imported torch already and forks a fresh worker for each candidate.

It runs no candidate code, no parallel torch operation and never touches CUDA: any of these would
break its children. `python -m evaluator.worker.zygote FD FOLDER PROGRAM [HIDDEN...]` speaks with
the judge over FD. PROGRAM is the module whose `serve` its children run.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import importlib
import importlib.util
import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

from evaluator.ipc.wire import Channel, ClosedError, Kind
from evaluator.walls.bait import Bait
from evaluator.walls.layers import confine, enclose, run_against
from evaluator.walls.namespaces import Born, can_fork_apart, fork_apart, own_proc
from evaluator.walls.scratch import remove
from evaluator.worker.orders import WORKER, ForkOrder, ReapOrder


def main(fd: int, folder: Path, program: str, *hidden: Path) -> None:
    """Fork a worker for each FORK, report how a worker ended for each REAP.

    `folder` holds the workers' scratch folders. Workers do not see the files that are `hidden`.
    """
    # Of Ctrl-C its owner hears, and may finish what is under way.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = Channel(socket.socket(fileno=fd), takes_fds=True)
    try:
        _serve(channel, folder, program, hidden)
    except ClosedError:
        # The judge may be gone without a word.
        remove(folder)


def _serve(channel: Channel, folder: Path, program: str, hidden: Sequence[Path]) -> NoReturn:
    layers = enclose(folder, hidden=hidden)
    apart = can_fork_apart()
    apart_on_cpu = apart or can_fork_apart(with_proc=False)
    allowed = os.sched_getaffinity(0)
    # What is imported stays: to look for garbage in it takes long, and would copy it in workers.
    gc.disable()
    for step in (_load_openmp, import_ahead, lambda: importlib.import_module(program)):
        step()
        # libgomp has bound this thread as well: to the first processor, where all zygotes of a
        # host would import torch in turn, and later threads of other libraries would inherit that.
        os.sched_setaffinity(0, allowed)
    gc.freeze()
    gc.enable()
    channel.send(Kind.FORKED, b"{}")
    while True:
        message = channel.receive()
        if message.kind is Kind.FORK:
            order = ForkOrder.decode(message.payload)
            if order.triton:
                _import_triton()
            alone = apart or (apart_on_cpu and order.memory_bytes is not None)
            try:
                born = fork_apart() if alone else Born(os.fork(), None)
                answer = asdict(born)
            except OSError as error:
                # A candidate may have taken all the processes that there are.
                born, answer = None, {"error": str(error)}
            if born is not None and born.pid == 0:
                channel.close()
                held = [*layers, "pid_namespace"] if alone else layers
                _become_worker(order, held, program, *message.fds)
            for descriptor in message.fds:
                os.close(descriptor)
            channel.send(Kind.FORKED, json.dumps(answer).encode())
        elif message.kind is Kind.REAP:
            done, status = os.waitpid(ReapOrder.decode(message.payload).pid, os.WNOHANG)
            answer = {"status": os.waitstatus_to_exitcode(status) if done else None}
            channel.send(Kind.REAPED, json.dumps(answer).encode())


def _load_openmp() -> None:
    """Load the libgomp that torch brings along, if it does, ahead of torch."""
    torch = importlib.util.find_spec("torch")
    assert torch is not None and torch.origin is not None
    package = Path(torch.origin).parent
    for library in (*package.glob("lib/libgomp*"), *package.parent.glob("torch.libs/libgomp*")):
        # Without it everything is as right, and slower.
        with contextlib.suppress(OSError):
            ctypes.CDLL(str(library))


def import_ahead() -> None:
    """Import what every worker needs, without waking CUDA, which would spoil all children."""
    import torch

    importlib.import_module(WORKER)
    asked = torch.cuda.is_available
    # On import this module asks whether there is a GPU, and asking initialises the driver.
    torch.cuda.is_available = lambda: True
    try:
        importlib.import_module("torch.utils.cpp_extension")
    finally:
        torch.cuda.is_available = asked


def _import_triton() -> None:
    with contextlib.suppress(ImportError, AttributeError):
        # The key is of all of Triton's files, and kept.
        importlib.import_module("triton.runtime.cache").triton_key()


def _become_worker(
    order: ForkOrder, layers: list[str], program: str, talk: int, log: int, bait_folder: int = -1
) -> NoReturn:
    try:
        os.dup2(log, 1)
        os.dup2(log, 2)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        if "ASAN_OPTIONS" not in os.environ:
            # A sanitizer's report of a fault needs more stack than this brings along.
            faulthandler.enable(file=2, all_threads=False)
        scratch = Path(order.scratch)
        channel = Channel(socket.socket(fileno=talk), takes_fds=True)
        if order.bait is not None:
            held = run_against(
                Bait(**order.bait),
                bait_folder,
                scratch,
                memory_bytes=order.memory_bytes,
                cpu_seconds=order.cpu_seconds,
                enclosed=layers,
            )
            channel.send(Kind.READY, ",".join(held).encode())
            os._exit(0)
        active = list(layers)
        if order.confine:
            active += confine(
                scratch,
                memory_bytes=order.memory_bytes,
                cpu_seconds=order.cpu_seconds,
                enclosed=layers,
                keep_scratch=program != WORKER,
            )
        else:
            # It is for a reference to be compiled.
            os.setsid()
            os.chdir(scratch)
            if "pid_namespace" in layers:
                with contextlib.suppress(OSError):
                    own_proc()
            # It asks whether there is a GPU, which fails for good without a /proc of one's own.
            importlib.import_module("torch._inductor.compile_fx")
        channel.send(Kind.READY, ",".join(active).encode())
        sys.modules[program].serve(channel)
    except ClosedError:
        os._exit(0)
    except BaseException:  # noqa: BLE001 - the boundary of the process
        import traceback

        traceback.print_exc()
        os._exit(3)
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], *map(Path, sys.argv[4:]))
