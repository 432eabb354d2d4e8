"""What a run takes beside its model and its judge: time a turn, memory, going on, reading it.

Both answer at once here, so that everything measured is ours: graph, store, display.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evaluator.record import Record
from experiments.bench.loop.measured_process import Display, Job, Measured, Strategy
from experiments.bench.suites.machine import Machine, machine
from problems.errors import UsageError

ROOT = Path(__file__).resolve().parents[3]
REFINE_TURNS = 10
_PROBLEM = '''\
import torch
import torch.nn as nn


class Model(nn.Module):
    """Scales each feature, normalises over the features, and applies tanh."""

    def __init__(self, num_features: int, eps: float = 1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(num_features))
        self.bias = nn.Parameter(torch.randn(num_features))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x * self.weight + self.bias
        x = x / torch.sqrt(torch.mean(x * x, dim=1, keepdim=True) + self.eps)
        return torch.tanh(x) * {factor}


def get_inputs():
    return [torch.randn(128, 4096)]


def get_init_inputs():
    return [4096]
'''


class StrategyOverhead(Record):
    """One run of stand-in turns from its first turn to its table, each step in a process of its
    own. Seconds of a step are those of its whole process, the interpreter's start included."""

    strategy: Strategy
    display: Display
    problems: int
    calls: int
    """A problem."""
    turns: int
    seconds: float
    """From opening the run to the end of its summary."""
    ms_a_turn: float
    """`seconds` over `turns`."""
    cpu_ms_a_turn: float
    """The same of the processor's time, the interpreter's start included."""
    memory_mib: tuple[float, ...]
    """Before the first turn, at a quarter, half and three quarters of them, and after the last."""
    peak_memory_mib: float
    resume_seconds: float
    """The same command again, which has nothing left to do."""
    resume_calls: int
    """What it asked of the model all the same."""
    resume_peak_memory_mib: float
    first_turn_after_kill_seconds: float
    """With one call more a problem: killed by SIGKILL while a turn was judged, and from the next
    command's start to the first turn that it recorded."""
    load_seconds: float
    """Of `load_runs` alone."""
    load_peak_memory_mib: float
    disk_mib: float
    """Of the run directory, in blocks of the disk."""


class OverheadFigures(Record):
    """Both strategies, measured on one machine."""

    machine: Machine
    workers: int
    sample: StrategyOverhead
    refine: StrategyOverhead


def measure_overhead(
    problems: int = 250,
    samples: int = 100,
    *,
    refine_turns: int = REFINE_TURNS,
    workers: int = 1,
    folder: Path | None = None,
) -> OverheadFigures:
    """Drive `problems` made-up problems, `samples` calls each with `sample` and `refine_turns`
    with `refine`, and read the runs.

    The runs are left in `folder`, or made in a temporary one and removed. Raises `UsageError` where
    `folder` holds something already, and `RuntimeError` where a step did not do what it should have
    done: its figures would be worth nothing.
    """
    if folder is not None and folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty; name a new folder")
    here = machine(["cpu"])
    with _place(folder) as place:
        level = place / "suite" / "level1"
        level.mkdir(parents=True)
        for number in range(1, problems + 1):
            text = _PROBLEM.format(factor=1 + number / 1000)
            (level / f"{number}_scaled_norm_{number}.py").write_text(text)
        return OverheadFigures(
            machine=here,
            workers=workers,
            sample=_measure(place, "sample", "rich", problems, samples, workers),
            refine=_measure(place, "refine", "plain", problems, refine_turns, workers),
        )


@contextmanager
def _place(folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="overhead-") as temporary:
        yield Path(temporary)


def _measure(
    place: Path, strategy: Strategy, display: Display, problems: int, calls: int, workers: int
) -> StrategyOverhead:
    job = Job(
        do="finish",
        run=place / strategy,
        suite=place / "suite",
        strategy=strategy,
        budget=calls,
        workers=workers,
        display=display,
    )
    turns = problems * calls
    whole = _done(job)
    _require(whole.turns == turns, f"{whole.turns} of {turns} turns were recorded")
    began = time.monotonic()
    again = _done(job.model_copy(update={"do": "go on"}))
    resume_seconds = time.monotonic() - began
    _require(again.recorded == turns and again.turns == 0, "the finished run took another turn")
    table = _done(job.model_copy(update={"do": "load"}))
    _require(table.recorded == turns, f"load_runs found {table.recorded} of {turns} turns")
    disk = sum(path.stat().st_blocks for path in job.run.rglob("*")) * 512 / 2**20
    killed = _run(job.model_copy(update={"do": "be killed", "budget": calls + 1}))
    _require(killed is None, "the process that was to kill itself ended in peace")
    began = time.monotonic()
    first = _done(job.model_copy(update={"do": "one turn", "budget": calls + 1}))
    assert first.first_turn_at is not None
    return StrategyOverhead(
        strategy=strategy,
        display=display,
        problems=problems,
        calls=calls,
        turns=turns,
        seconds=whole.seconds,
        ms_a_turn=1000 * whole.seconds / turns,
        cpu_ms_a_turn=1000 * whole.cpu_seconds / turns,
        memory_mib=whole.memory_mib,
        peak_memory_mib=whole.peak_memory_mib,
        resume_seconds=resume_seconds,
        resume_calls=again.calls,
        resume_peak_memory_mib=again.peak_memory_mib,
        first_turn_after_kill_seconds=first.first_turn_at - began,
        load_seconds=table.seconds,
        load_peak_memory_mib=table.peak_memory_mib,
        disk_mib=disk,
    )


def _require(as_it_should: bool, otherwise: str) -> None:
    if not as_it_should:
        raise RuntimeError(f"{otherwise}; nothing was measured")


def _done(job: Job) -> Measured:
    measured = _run(job)
    _require(measured is not None, "the measured process was killed")
    assert measured is not None
    return measured


def _run(job: Job) -> Measured | None:
    """Do `job` in a process of its own; None where a signal ended it."""
    file = job.run.with_suffix(".job.json")
    file.write_text(job.model_dump_json())
    found = file.with_suffix(".measured.json")
    found.unlink(missing_ok=True)
    command = [sys.executable, "-m", "experiments.bench.loop.measured_process", str(file)]
    # rich draws as on a terminal, into a file.
    terminal = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "160", "LINES": "50"}
    said = file.with_suffix(".stderr")
    with said.open("wb") as screen:
        code = subprocess.run(
            command, cwd=ROOT, env=os.environ | terminal, stderr=screen
        ).returncode
    if code < 0:
        return None
    words = said.read_text(errors="replace").splitlines()[-1:]
    _require(code == 0, f"the measured process ended with {code} ({' '.join(words)}; see {said})")
    return Measured.model_validate_json(found.read_text())


def told(figures: OverheadFigures) -> list[str]:
    """The figures as lines for a person, each beside what it should stay below."""
    lines = [str(figures.machine)]
    for run in (figures.sample, figures.refine):
        start, *quarters = run.memory_mib
        after = " / ".join(f"{mib:.0f}" for mib in quarters)
        lines += [
            f"{run.strategy}: {run.problems} problems x {run.calls} calls = {run.turns:,} turns in"
            f" {run.seconds:.0f} s, {figures.workers} at a time, display {run.display}",
            f"  a turn: {run.ms_a_turn:.1f} ms (bar: 20), {run.cpu_ms_a_turn:.1f} of them of the"
            " processor",
            f"  memory: {start:.0f} MiB before, {after} at each quarter,"
            f" at most {run.peak_memory_mib:.0f} (bar: 1024)",
            f"  again, with nothing to do: {run.resume_seconds:.1f} s (bar: 10)",
            f"  first turn after a kill: {run.first_turn_after_kill_seconds:.1f} s",
            f"  load_runs: {run.load_seconds:.1f} s (bar: 10), at most"
            f" {run.load_peak_memory_mib:.0f} MiB",
            f"  on disk: {run.disk_mib:.0f} MiB",
        ]
    return lines
