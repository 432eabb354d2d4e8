"""The judge's hold on the process with torch imported: it forks one worker per candidate."""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evaluator.errors import InfrastructureError
from evaluator.hardware.nvml import hidden_device_files
from evaluator.ipc.wire import ClosedError, Kind, WireError, WireTimeoutError, pair
from evaluator.judge.workers.printed import Printed
from evaluator.judge.workers.process import START_TIMEOUT_S, WorkerLimits, WorkerProcess
from evaluator.judge.workers.warm_worker import WarmPool
from evaluator.walls import memory_group
from evaluator.walls.bait import bait
from evaluator.walls.environment import clean_environment, python_module
from evaluator.walls.memory_group import MemoryGroup
from evaluator.walls.probe import JUDGE_OUT_OF_REACH
from evaluator.walls.scratch import remove
from evaluator.worker.orders import WORKER, ForkOrder, Order, ReapOrder

_PROBE_BYTES = 16 * 2**30
_APART = {"pid_namespace", "own_uid"}
"""By either of these a candidate can do nothing to another one's worker: it can't name it, or it
is another user's. Without both it could stop or slow down its successor's warm worker."""
_ANSWER_TIMEOUT_S = 30.0
_REAP_PERIOD_S = 0.002
_OPENMP = {"OMP_PROC_BIND": "spread", "GOMP_SPINCOUNT": "20000"}
"""Each thread of a worker's OpenMP pool keeps to a processor of its own.

Left alone, the scheduler of a virtual machine often woke the pool behind the main thread on one
processor, where two threads take as long as one: the same call took 3.7 or 7 ms. Idle threads look
for work for about 1 ms before they sleep. If they slept at once, the main thread, woken by the
pool at the end of a parallel region, would move to the pool's processor; if they spun for longer,
they would disturb the other worker's call.
"""


class Zygote:
    """A process with torch imported, from which workers are forked.

    It starts at once, which takes seconds; who first wants something of it waits until it is there.

    Workers may be made ahead, as warm workers; nothing else here is for several threads.
    """

    def __init__(
        self,
        environment: Mapping[str, str] | None = None,
        *,
        probe_bytes: int | None = _PROBE_BYTES,
        device: str = "cpu",
        program: str = WORKER,
    ) -> None:
        """`environment` comes on top of the clean one: what must be set when the process starts.

        `probe_bytes` limits the address space of the worker that tries the walls; None where that
        is more than a preloaded runtime can live with. `device`: whose context a warm worker makes.
        `program`: the module that workers run. Another one's scratch folder stays until its end.
        """
        self._probe_bytes = probe_bytes
        self._held: tuple[str, ...] | None = None
        """The layers that a worker failed to break; None before that was tried."""
        self.pool = WarmPool(
            device, lambda limits: self._fork_fresh(limits, confine=True), self._may_wait
        )
        self.compilers = WarmPool(
            device, lambda limits: self._fork_fresh(limits, confine=False), self._may_wait
        )
        """Trusted workers, with PyTorch's compiler."""
        self.imports_triton = False
        """For later workers, each of which it would take a second."""
        self._talks = threading.Lock()
        self._groups = memory_group.tried()
        self._numbers = itertools.count(1)
        self._folder = Path(tempfile.mkdtemp(prefix="refinery-"))
        self._folder.chmod(0o755)
        self._channel, theirs = pair()
        scratch = self._new_scratch()
        hidden = [] if device == "cpu" else hidden_device_files()
        with theirs:
            self._process = subprocess.Popen(
                python_module(
                    "evaluator.worker.zygote",
                    *(str(theirs.fileno()), str(self._folder), program, *map(str, hidden)),
                ),
                pass_fds=[theirs.fileno()],
                env=clean_environment(scratch) | _OPENMP | dict(environment or {}),
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr,
            )

    def _walls(self) -> tuple[str, ...]:
        """The layers that a worker of this zygote failed to break. The first time, waits until the
        zygote is there and has one try; raises `InfrastructureError` where it did not start."""
        if self._held is None:
            if not self.alive:
                raise InfrastructureError("the worker's zygote did not start")
            try:
                try:
                    self._channel.receive(START_TIMEOUT_S)
                except WireError as error:
                    message = f"the worker's zygote did not start: {error!r}"
                    raise InfrastructureError(message) from None
                self._held = self._try_walls()
            except BaseException:
                self.close()
                raise
        return self._held

    def _try_walls(self) -> tuple[str, ...]:
        folder = self._folder / "bait"
        folder.mkdir()
        with bait(folder) as (laid, handle):
            limits = WorkerLimits(self._probe_bytes, cpu_seconds=60)
            probe = self._fork(limits, confine=True, bait=asdict(laid), fds=(handle,))
            probe.end(grace_s=1.0)
        return probe.isolation

    def _new_scratch(self) -> Path:
        scratch = self._folder / str(next(self._numbers))
        scratch.mkdir()
        return scratch

    def fork(self, limits: WorkerLimits, *, confine: bool = True) -> WorkerProcess:
        """A worker that has run nothing yet, confined; raises `InfrastructureError` when none
        could be had.

        It is the first warm worker, if there is one with these limits. Its isolation names the
        layers that it could put up and that an attack did not break.
        """
        self._walls()
        pool = self.pool if confine else self.compilers
        if (worker := pool.take(limits)) is not None:
            return worker
        return self._fork_fresh(limits, confine=confine)

    def _may_wait(self) -> bool:
        return self.alive and not _APART.isdisjoint(self._walls())

    def _fork_fresh(self, limits: WorkerLimits, *, confine: bool) -> WorkerProcess:
        group = None
        if limits.family_bytes is not None and self._groups is not None:
            with contextlib.suppress(OSError):
                group = MemoryGroup(self._groups, limits.family_bytes)
        try:
            worker = self._fork(limits, confine=confine, group=group)
        except BaseException:
            if group is not None:
                group.close()
            raise
        worker.isolation = tuple(
            layer
            for layer in self._walls()
            if layer in worker.isolation or (confine and layer == JUDGE_OUT_OF_REACH)
        )
        if group is not None:
            worker.isolation += (memory_group.LAYER,)
        return worker

    def _fork(
        self,
        limits: WorkerLimits,
        *,
        confine: bool,
        bait: dict[str, Any] | None = None,
        fds: tuple[int, ...] = (),
        group: MemoryGroup | None = None,
    ) -> WorkerProcess:
        scratch = self._new_scratch()
        limited = limits.memory_bytes, limits.cpu_seconds
        order = ForkOrder(str(scratch), *limited, confine, bait, self.imports_triton)
        try:
            printed = Printed()
        except RuntimeError as error:
            remove(scratch)
            raise InfrastructureError(f"a worker could not be forked: {error}") from None
        mine, theirs = pair()
        with theirs:
            try:
                handed = (theirs.fileno(), printed.for_worker, *fds)
                born = self._ask(Kind.FORK, order, START_TIMEOUT_S, handed)
                failure = born.get("error")
            except (WireError, OSError) as error:
                failure = f"its zygote is gone: {error!r}"
        printed.give_away()
        if failure is not None:
            mine.close()
            printed.close()
            remove(scratch)
            raise InfrastructureError(f"a worker could not be forked: {failure}")
        worker = WorkerProcess(born["pid"], born["init"], mine, scratch, printed, self.reap, group)
        try:
            if group is not None:
                # Nothing of the candidate's has run yet.
                group.add(born["pid"])
            ready = mine.receive(START_TIMEOUT_S)
        except (WireError, OSError):
            ending = worker.end(grace_s=1.0)
            raise InfrastructureError(
                f"a worker could not be confined (status {ending.status}): {ending.log[-400:]}"
            ) from None
        worker.isolation = tuple(ready.payload.decode().split(","))
        return worker

    def reap(self, pid: int, timeout_s: float) -> int | None:
        """How a worker ended; None if it still runs after `timeout_s`.

        A GPU's context takes its time to end: another thread can fork meanwhile.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                answer = self._ask(Kind.REAP, ReapOrder(pid), _ANSWER_TIMEOUT_S)
            except (ClosedError, WireTimeoutError):
                return None
            status: int | None = answer["status"]
            if status is not None or time.monotonic() > deadline:
                return status
            time.sleep(_REAP_PERIOD_S)

    def _ask(
        self, kind: Kind, order: Order, timeout_s: float, fds: tuple[int, ...] = ()
    ) -> dict[str, Any]:
        with self._talks:
            self._channel.send(kind, order.encode(), fds)
            answer: dict[str, Any] = json.loads(self._channel.receive(timeout_s).payload)
        return answer

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        self.pool.close()
        self.compilers.close()
        self._channel.close()
        try:
            self._process.wait(2.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        remove(self._folder)
