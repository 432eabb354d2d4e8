"""A real server in a process of its own, with a small suite, on a CPU."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.command import ROOT
from tests.exploits.problems import matmul
from tools.serve.reward_client import RewardClient

JUDGED = ("--device", "cpu", "--timing-seconds", "0.05", "--no-audit")
"""Options of the judge, of the server and of `evaluator.check`."""
PATIENCE_S = 600.0


@dataclass(frozen=True)
class ServerAtHand:
    """A server that runs."""

    process: subprocess.Popen[str]
    address: str
    token: str

    @property
    def client(self) -> RewardClient:
        """One that brings the token."""
        return RewardClient(self.address, self.token, timeout_s=PATIENCE_S)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.address.rpartition(":")[2])

    def once(self, good: Callable[[dict[str, int]], bool]) -> dict[str, int]:
        """`/health`, as soon as it is as it should be."""
        end = time.monotonic() + PATIENCE_S
        while not good(found := self.client.health()):
            assert time.monotonic() < end, found
            time.sleep(0.02)
        return found


def suite_in(folder: Path) -> Path:
    """A suite of one problem, `level1_1_matmul`."""
    (folder / "level1").mkdir()
    (folder / "level1" / "1_matmul.py").write_text(matmul(64))
    return folder


@contextmanager
def server(suite: Path, *options: str) -> Iterator[ServerAtHand]:
    """With these options; ended at last, whatever became of it."""
    words = ["-m", "tools.serve", *JUDGED, "--suite", str(suite), *options]
    process = subprocess.Popen(
        [sys.executable, "-W", "error", *words],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        address = process.stdout.readline().removeprefix("address: ").strip()
        token = process.stdout.readline().removeprefix("token: ").strip()
        assert address and token, process.communicate()[1]
        yield ServerAtHand(process, address, token)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
