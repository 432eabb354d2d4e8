"""The judge's hold on the processes that run modules: one zygote, one worker per candidate."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from evaluator.errors import InfrastructureError
from evaluator.judge.printed import Printed
from evaluator.walls import memory_group
from evaluator.walls.bait import bait
from evaluator.walls.environment import clean_environment
from evaluator.walls.memory_group import MemoryGroup
from evaluator.walls.probe import JUDGE_OUT_OF_REACH
from evaluator.walls.scratch import remove
from evaluator.wire import Channel, ClosedError, Kind, Message, WireError, WireTimeoutError, pair

_START_TIMEOUT_S = 120.0
_REAP_TIMEOUT_S = 10.0
_PROBE_BYTES = 16 * 2**30
_OPENMP = {"OMP_PROC_BIND": "spread", "GOMP_SPINCOUNT": "20000"}
"""Each thread of a worker's OpenMP pool keeps to a processor of its own.

Left alone, the scheduler of a virtual machine often woke the pool behind the main thread on one
processor, where two threads take as long as one: the same call took 3.7 or 7 ms. Idle threads look
for work for about 1 ms before they sleep. If they slept at once, the main thread, woken by the
pool at the end of a parallel region, would move to the pool's processor; if they spun for longer,
they would disturb the other side's call.
"""


@dataclass(frozen=True)
class Ending:
    """How a worker ended: its exit code or minus the signal, and the end of what it printed."""

    status: int | None
    log: str
    out_of_memory: bool = False
    """Somebody of the worker's family was killed because they used too much together."""

    @property
    def signal_name(self) -> str:
        """`SIGSEGV` and the like, empty for an ordinary exit."""
        if self.status is None or self.status >= 0:
            return ""
        try:
            return signal.Signals(-self.status).name
        except ValueError:
            return f"signal {-self.status}"


class WorkerProcess:
    """One worker: a channel to it and the means to end it, with all its children."""

    def __init__(
        self,
        pid: int,
        init: int | None,
        channel: Channel,
        scratch: Path,
        printed: Printed,
        zygote: Zygote,
        group: MemoryGroup | None = None,
    ) -> None:
        """`init`: the first process of the PID namespace that the worker lives in, if any.

        `group`: what limits the memory of the worker and its children together.
        """
        self.pid = pid
        self.channel = channel
        self.isolation: tuple[str, ...] = ()
        self._init = init
        self._scratch = scratch
        self._printed = printed
        self._zygote = zygote
        self._group = group
        self._ending: Ending | None = None

    def receive(self, timeout_s: float) -> Message:
        """The next message; raises `WireError` or one of its kinds."""
        return self.channel.receive(timeout_s)

    def end(self, *, grace_s: float = 0.0) -> Ending:
        """Kill the worker, unless it ends by itself within `grace_s`, and all that it started."""
        if self._ending is None:
            status = self._zygote.reap(self.pid, grace_s) if grace_s else None
            # Once it is reaped its pid may be another's; its group lives on while a child does.
            for target in (self.pid, -self.pid) if status is None else (-self.pid,):
                _kill(target)
            if self._init is not None:
                # Whoever left the group dies with the namespace.
                _kill(self._init)
            if status is None:
                killed = self._zygote.reap(self.pid, _REAP_TIMEOUT_S)
                status = killed if grace_s else None
            if self._init is not None:
                self._zygote.reap(self._init, _REAP_TIMEOUT_S)
            self.channel.close()
            out_of_memory = False
            if self._group is not None:
                out_of_memory = self._group.ran_out
                self._group.close()
            self._ending = Ending(status, self._printed.close(), out_of_memory)
            remove(self._scratch)
        return self._ending

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def _kill(target: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(target, signal.SIGKILL)


class Zygote:
    """A process with torch imported, from which workers are forked. Restarted when it dies."""

    def __init__(
        self,
        environment: Mapping[str, str] | None = None,
        *,
        probe_bytes: int | None = _PROBE_BYTES,
    ) -> None:
        """`environment` comes on top of the clean one: what must be set when the process starts.

        `probe_bytes` limits the address space of the worker that tries the walls; None where that
        is more than a preloaded runtime can live with.
        """
        self._folder = Path(tempfile.mkdtemp(prefix="refinery-"))
        self._folder.chmod(0o755)
        self._count = 0
        self._groups = memory_group.tried()
        self._channel, theirs = pair()
        scratch = self._new_scratch()
        with theirs:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "evaluator.worker.zygote"),
                    *(str(theirs.fileno()), str(self._folder)),
                ],
                pass_fds=[theirs.fileno()],
                env=clean_environment(scratch) | _OPENMP | dict(environment or {}),
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr,
            )
        try:
            self._channel.receive(_START_TIMEOUT_S)
        except WireError as error:
            self.close()
            raise InfrastructureError(f"the worker's zygote did not start: {error!r}") from None
        try:
            self._held = self._try_walls(probe_bytes)
        except BaseException:
            self.close()
            raise

    def _try_walls(self, memory_bytes: int | None) -> tuple[str, ...]:
        """The layers that a worker of this zygote failed to break."""
        folder = self._folder / "bait"
        folder.mkdir()
        with bait(folder) as (laid, handle):
            probe = self._fork(
                memory_bytes, cpu_seconds=60, confine=True, bait=laid.as_json(), fds=(handle,)
            )
            probe.end(grace_s=1.0)
        return probe.isolation

    def _new_scratch(self) -> Path:
        self._count += 1
        scratch = self._folder / str(self._count)
        scratch.mkdir()
        return scratch

    def fork(
        self,
        *,
        memory_bytes: int | None,
        cpu_seconds: int,
        family_bytes: int | None = None,
        confine: bool = True,
    ) -> WorkerProcess:
        """A fresh worker, confined; raises `InfrastructureError` when none could be had.

        `memory_bytes` limits the address space of each process, `family_bytes` the memory of the
        worker and all that it starts together, where the system allows it. Its isolation names the
        layers that it could put up and that an attack did not break.
        """
        group = None
        if family_bytes is not None and self._groups is not None:
            with contextlib.suppress(OSError):
                group = MemoryGroup(self._groups, family_bytes)
        try:
            worker = self._fork(memory_bytes, cpu_seconds=cpu_seconds, confine=confine, group=group)
        except BaseException:
            if group is not None:
                group.close()
            raise
        worker.isolation = tuple(
            layer
            for layer in self._held
            if layer in worker.isolation or (confine and layer == JUDGE_OUT_OF_REACH)
        )
        if group is not None:
            worker.isolation += (memory_group.LAYER,)
        return worker

    def _fork(
        self,
        memory_bytes: int | None,
        *,
        cpu_seconds: int,
        confine: bool,
        bait: dict[str, Any] | None = None,
        fds: tuple[int, ...] = (),
        group: MemoryGroup | None = None,
    ) -> WorkerProcess:
        scratch = self._new_scratch()
        order = {
            "scratch": str(scratch),
            "memory_bytes": memory_bytes,
            "cpu_seconds": cpu_seconds,
            "confine": confine,
            "bait": bait,
        }
        mine, theirs = pair()
        printed = Printed()
        with theirs:
            try:
                self._channel.send(
                    Kind.FORK,
                    json.dumps(order).encode(),
                    (theirs.fileno(), printed.for_worker, *fds),
                )
                answer = self._channel.receive(_START_TIMEOUT_S)
            except WireError as error:
                printed.give_away()
                printed.close()
                raise InfrastructureError(f"the worker's zygote is gone: {error!r}") from None
        printed.give_away()
        born = json.loads(answer.payload)
        worker = WorkerProcess(born["pid"], born["init"], mine, scratch, printed, self, group)
        try:
            if group is not None:
                # Nothing of the candidate's has run yet.
                group.add(born["pid"])
            ready = worker.receive(_START_TIMEOUT_S)
        except (WireError, OSError):
            ending = worker.end(grace_s=1.0)
            raise InfrastructureError(
                f"a worker could not be confined (status {ending.status}): {ending.log[-400:]}"
            ) from None
        worker.isolation = tuple(ready.payload.decode().split(","))
        return worker

    def reap(self, pid: int, timeout_s: float) -> int | None:
        """How a worker ended; None if it still runs after `timeout_s`."""
        try:
            self._channel.send(Kind.REAP, json.dumps({"pid": pid, "timeout_s": timeout_s}).encode())
            answer = self._channel.receive(timeout_s + 30.0)
        except (ClosedError, WireTimeoutError):
            return None
        status: int | None = json.loads(answer.payload)["status"]
        return status

    @property
    def alive(self) -> bool:
        """Whether it can fork workers still."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the zygote; its workers die with it."""
        self._channel.close()
        try:
            self._process.wait(2.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        remove(self._folder)
