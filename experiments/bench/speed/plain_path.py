"""Running the plain path: a fresh process a candidate, with an extension folder of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from evaluator.errors import InfrastructureError
from evaluator.evaluation import Status
from evaluator.record import Record
from evaluator.walls.environment import python_path
from experiments.bench.speed.catalogue import BenchCandidate

_TIMEOUT_S = 600.0


class PlainRun(Record):
    """One candidate through PyTorch's own `load_inline`, from the start of Python to its end."""

    seconds: float
    status: Status
    reason: str = ""
    latency_us: float | None = None
    """Median of its hundred timed calls; nothing else is timed beside them."""


def plain_runs(
    candidates: Sequence[BenchCandidate], device: str, side_by_side: int
) -> list[PlainRun]:
    """Each candidate in a process of its own, so many at a time."""
    with ThreadPoolExecutor(side_by_side) as pool:
        return list(pool.map(lambda candidate: plain_run(candidate, device), candidates))


def plain_run(candidate: BenchCandidate, device: str) -> PlainRun:
    """Wall seconds and verdict. Raises `InfrastructureError` where the process gave no verdict."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        (folder / "reference.py").write_text(candidate.reference)
        (folder / "candidate.py").write_text(candidate.source)
        (folder / "extensions").mkdir()
        outcome = folder / "outcome.json"
        # torch looks for ninja on the PATH, and Triton keeps a cache too.
        environment = os.environ | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}",
            "PYTHONPATH": python_path(),
            "TORCH_EXTENSIONS_DIR": str(folder / "extensions"),
            "TRITON_CACHE_DIR": str(folder / "triton"),
        }
        command = [sys.executable, "-m", "experiments.bench.speed.plain_process"]
        command += [str(folder / "reference.py"), str(folder / "candidate.py"), device]
        with (folder / "printed").open("w+") as printed:
            begin = time.monotonic()
            process = subprocess.Popen(
                [*command, str(outcome)],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                process.wait(_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return PlainRun(seconds=_TIMEOUT_S, status=Status.TIMEOUT)
            seconds = time.monotonic() - begin
            if not outcome.exists():
                printed.seek(0)
                said = f"code {process.returncode}: {printed.read()[-2000:]}"
                if process.returncode < 0:  # a signal: the candidate crashed
                    return PlainRun(seconds=seconds, status=Status.RUNTIME_ERROR, reason=said)
                raise InfrastructureError(
                    f"the plain path of {candidate.name} gave no verdict, {said}"
                )
        return PlainRun.model_validate({"seconds": seconds} | json.loads(outcome.read_text()))
