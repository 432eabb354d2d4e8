"""A run on a Ray cluster that loses a judge and a node, and the same answers judged without Ray.

The cluster is a head that judges nothing and one node, both on this machine. A third of the way its
judge is killed, at two thirds the whole node; another one joins then.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from agent.record.run_files import RunFiles
from agent.record.turn import TurnRecord
from evaluator.errors import InfrastructureError
from evaluator.hardware.cores import usable_cores
from evaluator.record import Record
from experiments.bench.serving.local_cluster import LocalCluster, local_cluster
from experiments.bench.serving.process_family import process_family
from experiments.bench.suites.machine import Machine, machine

_JUDGE = b"evaluator.executor.judge_server"
_LOOK_EVERY_S = 0.1
_MOST_TOLD = 10


class ClusterFigures(Record):
    """One run on the cluster, and the same answers on the local executor."""

    machine: Machine
    ray: str
    timing_seconds: float
    candidates: int
    """Turns in the record of the run on the cluster."""
    twice: int
    """Turns that this record holds more than once."""
    statuses: dict[str, int]
    """On the cluster."""
    differing: tuple[str, ...]
    """The first turns with another status or reason without Ray."""
    same: int
    """Turns with the same status and reason."""
    judge_killed_after: int
    """Turns that were recorded by then."""
    node_killed_after: int
    cluster_s: float
    """Of the whole run, both losses included."""
    local_s: float


@dataclass
class _Danger:
    """Kills the judge and the node of a cluster while a run goes on."""

    cluster: LocalCluster
    gpus: int
    cpus: int
    turns: int
    """That the run will have."""
    judge_killed_after: int = 0
    node_killed_after: int = 0

    def look(self, recorded: int) -> None:
        """Kill what is due after so many turns."""
        if not self.judge_killed_after and recorded >= max(1, self.turns // 3):
            if judges := [pid for pid in process_family(self.cluster.pid) if _is_judge(pid)]:
                os.kill(judges[0], signal.SIGKILL)
                self.judge_killed_after = recorded
        elif not self.node_killed_after and recorded >= max(2, 2 * self.turns // 3):
            self.cluster.lose()
            self.node_killed_after = recorded
            self.cluster.join(num_cpus=self.cpus, num_gpus=self.gpus)


def measure_cluster(
    device: str,
    *,
    problems: int,
    budget: int,
    timing_seconds: float,
    keep: Callable[[ClusterFigures], None] = lambda figures: None,
) -> ClusterFigures:
    """`budget` samples of `offline/tuner` for each of so many problems of level 1 on `cpu` or
    `cuda:0`. Raises `InfrastructureError` where a run does not end, or nothing could be killed."""
    here = machine([device])
    gpus, cpus = (0, usable_cores()) if device == "cpu" else (1, 1)
    words = [
        *("--strategy", "sample", "--level", "1", "--limit", str(problems), "--rival", "none"),
        *("--budget", str(budget), "--confirm", "0", "--no-audit", "--display", "none"),
        *("--timing-seconds", str(timing_seconds)),
    ]
    with tempfile.TemporaryDirectory(prefix="cluster-run-") as name:
        on_ray, without = Path(name, "ray"), Path(name, "local")
        with local_cluster(nodes=0) as cluster:
            cluster.join(num_cpus=cpus, num_gpus=gpus)
            danger = _Danger(cluster, gpus, cpus, turns=problems * budget)
            kind = device.partition(":")[0]
            ray_words = [*words, "--device", kind, "--executor", "ray"]
            ray_words += ["--ray-address", cluster.address]
            cluster_s = _run(ray_words, on_ray, danger.look)
        if not danger.judge_killed_after or not danger.node_killed_after:
            raise InfrastructureError("the run ended before anything was killed; give it more")
        turns = list(RunFiles(on_ray).turns())
        local_s = _run([*words, "--device", device, "-m", f"replay/{on_ray}"], without)
        local = {_key(turn): _verdict(turn) for turn in RunFiles(without).turns()}
    figures = ClusterFigures(
        machine=here,
        ray=version("ray"),
        timing_seconds=timing_seconds,
        candidates=len(turns),
        twice=len(turns) - len({_key(turn) for turn in turns}),
        statuses=Counter(turn.evaluation.status for turn in turns),
        differing=tuple(_differing(turns, local))[:_MOST_TOLD],
        same=sum(local.get(_key(turn)) == _verdict(turn) for turn in turns),
        judge_killed_after=danger.judge_killed_after,
        node_killed_after=danger.node_killed_after,
        cluster_s=cluster_s,
        local_s=local_s,
    )
    keep(figures)
    return figures


def _run(
    words: Sequence[str], folder: Path, look: Callable[[int], None] = lambda recorded: None
) -> float:
    """`agent.run` with these words until it ends; `look` is told how many turns are recorded."""
    begin, record = time.monotonic(), folder / "turns.jsonl"
    with tempfile.TemporaryFile() as log:
        run = subprocess.Popen(
            [sys.executable, "-m", "agent.run", *words, "-o", str(folder)], stdout=log, stderr=log
        )
        try:
            while run.poll() is None:
                look(record.read_bytes().count(b"\n") if record.exists() else 0)
                time.sleep(_LOOK_EVERY_S)
        finally:
            run.kill()
            run.wait()
        if run.returncode != 0:
            log.seek(0)
            told = log.read().decode(errors="replace")[-1000:]
            raise InfrastructureError(f"agent.run ended with {run.returncode}: {told}")
    return time.monotonic() - begin


def _is_judge(pid: int) -> bool:
    with contextlib.suppress(OSError):  # it may have ended
        return _JUDGE in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return False


def _key(turn: TurnRecord) -> tuple[str, int, int]:
    return turn.problem, turn.sample, turn.turn


def _verdict(turn: TurnRecord) -> tuple[str, str]:
    return turn.evaluation.status, turn.evaluation.reason


def _differing(
    turns: Sequence[TurnRecord], local: dict[tuple[str, int, int], tuple[str, str]]
) -> list[str]:
    return [
        f"{turn.problem}, sample {turn.sample}: {_verdict(turn)} on the cluster, {other} without"
        for turn in turns
        if (other := local.get(_key(turn))) != _verdict(turn)
    ]


def told(figures: ClusterFigures) -> list[str]:
    """The figures for a person."""
    statuses = ", ".join(f"{number} {status}" for status, number in figures.statuses.items())
    return [
        f"{figures.machine}; ray {figures.ray}; {figures.timing_seconds:g} s of timing",
        f"{figures.candidates} candidates in {figures.cluster_s:.0f} s on the cluster ({statuses});"
        f" its judge was killed after {figures.judge_killed_after}, its node after"
        f" {figures.node_killed_after}; in the record twice: {figures.twice}",
        f"{figures.local_s:.0f} s without Ray; the same status and reason:"
        f" {figures.same} of {figures.candidates}",
        *figures.differing,
    ]
