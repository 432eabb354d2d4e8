"""The server that is measured, in a process of its own, and what it holds on to."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from evaluator.errors import InfrastructureError
from evaluator.hardware.device_lock import device_lock
from evaluator.record import Record
from evaluator.serve.reward_client import RewardClient
from experiments.bench.serving.process_family import open_files, process_family

_PATIENCE_S = 300.0


class Holdings(Record):
    """What the server and all processes below it hold, by /proc, while nothing is under way."""

    processes: int
    open_files: int
    memory_mib: float
    """Proportional: what several share is counted once."""


@dataclass(frozen=True)
class ServerProcess:
    """A server that runs."""

    process: subprocess.Popen[str]
    client: RewardClient
    device: str

    def holdings(self) -> Holdings:
        """Waits until nothing is under way, nor in the making."""
        end = time.monotonic() + _PATIENCE_S
        while (health := self.client.health())["under_way"] or health["waiting"]:
            if time.monotonic() > end:
                raise InfrastructureError("the server does not come to rest; nothing was measured")
            time.sleep(0.1)
        with device_lock(self.device):
            family = process_family(self.process.pid)
            return Holdings(
                processes=len(family),
                open_files=sum(map(open_files, family)),
                memory_mib=round(sum(map(_kib, family)) / 1024, 1),
            )

    def stop(self) -> int:
        """Have it end in good order; returns how many of its processes are left behind."""
        family = process_family(self.process.pid)
        self.process.terminate()
        self.process.wait(_PATIENCE_S)
        end = time.monotonic() + 10
        while (left := sum(map(_runs, family))) and time.monotonic() < end:
            time.sleep(0.1)
        return left


@contextmanager
def server_process(device: str, timing_seconds: float, queue: int) -> Iterator[ServerProcess]:
    """Our own suite, without audits. Raises `InfrastructureError` where it does not start."""
    words = ["--device", device, "--timing-seconds", str(timing_seconds), "--no-audit"]
    process = subprocess.Popen(
        [sys.executable, "-m", "evaluator.serve", *words, "--queue", str(queue)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        address = process.stdout.readline().removeprefix("address: ").strip()
        token = process.stdout.readline().removeprefix("token: ").strip()
        if not token:
            raise InfrastructureError("the server did not start; nothing was measured")
        yield ServerProcess(process, RewardClient(address, token), device)
    finally:
        process.terminate()
        process.wait(_PATIENCE_S)
        process.stdout.close()


def _kib(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0


def _runs(pid: int) -> bool:
    with contextlib.suppress(OSError):
        stat = Path(f"/proc/{pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] not in "ZX"
    return False
