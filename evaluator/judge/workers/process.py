"""The judge's hold on one worker: how to speak with it, and how to end all that it started."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from evaluator.ipc.wire import Channel
from evaluator.judge.workers.printed import Printed
from evaluator.walls.memory_group import MemoryGroup
from evaluator.walls.scratch import remove

if TYPE_CHECKING:
    import torch

START_TIMEOUT_S = 120.0
"""For whatever a worker does before it has a candidate."""
_REAP_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class WorkerLimits:
    """What a worker may use up: put up before it runs anything of a candidate's."""

    memory_bytes: int | None
    """Of the address space of each process. None on a GPU: CUDA reserves far more than it uses."""
    cpu_seconds: int = 3600
    """Of processor time, for each process."""
    family_bytes: int | None = None
    """Of the memory of the worker and all that it starts together, where the system allows it."""


def worker_limits(device: torch.device, memory_bytes: int | None) -> WorkerLimits:
    """For a worker that may use so much memory together with all that it starts."""
    return WorkerLimits(
        memory_bytes=memory_bytes if device.type == "cpu" else None, family_bytes=memory_bytes
    )


@dataclass(frozen=True)
class Ending:
    """How a worker ended: its exit code or minus the signal, and the end of what it printed."""

    status: int | None
    log: str
    out_of_memory: bool = False
    """One of its processes was killed because they used too much together."""

    @property
    def signal_name(self) -> str:
        if self.status is None or self.status >= 0:
            return ""
        try:
            return signal.Signals(-self.status).name
        except ValueError:
            return f"signal {-self.status}"


class WorkerProcess:
    def __init__(
        self,
        pid: int,
        init: int | None,
        channel: Channel,
        scratch: Path,
        printed: Printed,
        reap: Callable[[int, float], int | None],
        group: MemoryGroup | None = None,
    ) -> None:
        """`init`: the first process of the PID namespace that the worker lives in, if any.

        `reap`: its parent's word on how a process ended, None if it still runs after that many
        seconds. `group`: what limits the memory of the worker and its children together.
        """
        self.pid = pid
        self.channel = channel
        self.isolation: tuple[str, ...] = ()
        self.init = init
        self.scratch = scratch
        self._printed = printed
        self._reap = reap
        self._group = group
        self._ending: Ending | None = None

    @property
    def ended(self) -> bool:
        return self._ending is not None

    def end(self, *, grace_s: float = 0.0) -> Ending:
        """Kill the worker, unless it ends by itself within `grace_s`, and all that it started."""
        if self._ending is None:
            status = self._reap(self.pid, grace_s) if grace_s else None
            # Once it is reaped its pid may be another's; its group lives on while a child does.
            for target in (self.pid, -self.pid) if status is None else (-self.pid,):
                _kill(target)
            if self.init is not None:
                # A process that left the group dies with the namespace.
                _kill(self.init)
            if status is None:
                killed = self._reap(self.pid, _REAP_TIMEOUT_S)
                status = killed if grace_s else None
            if self.init is not None:
                self._reap(self.init, _REAP_TIMEOUT_S)
            self.channel.close()
            out_of_memory = False
            if self._group is not None:
                out_of_memory = self._group.ran_out
                self._group.close()
            self._ending = Ending(status, self._printed.close(), out_of_memory)
            remove(self.scratch)
        return self._ending

    def kill(self) -> None:
        """For any thread: who speaks with it sees that it is gone, and `end` does the rest."""
        _kill(self.pid if self.init is None else self.init)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def _kill(target: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(target, signal.SIGKILL)
