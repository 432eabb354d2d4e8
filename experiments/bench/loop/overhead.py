"""What a run takes beside its model and its judge: time a turn, memory, going on, reading it.

Both answer at once here, so that everything measured is ours: graph, store, display.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import pty
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal

from agent.record.revision import revision
from evaluator.hardware.cores import usable_cores
from evaluator.record import Record
from experiments.bench.loop.made_suite import write_suite
from experiments.bench.loop.measured_process import PARTS, Job, Measured
from problems.errors import UsageError

ROOT = Path(__file__).resolve().parents[3]
REFINE_TURNS = 10
PACKAGES = ("langgraph", "pydantic", "pandas", "rich")


class Part(Record):
    """Of one turn, what one part of the program took. On a busy machine the first is longer."""

    wall_ms: float
    cpu_ms: float


class StrategyOverhead(Record):
    """One run of stand-in turns from its first turn to its table, each step in a process of its
    own. Seconds of a step are those of its whole process, the interpreter's start included."""

    strategy: Literal["refine", "sample"]
    display: Literal["rich", "plain"]
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
    parts: dict[str, Part]
    """Of a turn, adding up to the two above (to as many of the first as there are workers):
    `store`, `display`, `stand-ins`, and `graph` for what is left: LangGraph, the
    nodes' own work (prompts, parsing of answers), waiting."""
    fsync_ms: float
    """Within `store`: waiting for the disk."""
    fsyncs_a_turn: float
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
    disk_mib: dict[str, float]
    """What lies in the run directory, in blocks of the disk."""


class OverheadFigures(Record):
    """Both strategies, measured on one machine."""

    sample: StrategyOverhead
    refine: StrategyOverhead
    workers: int
    created: str
    """UTC, ISO 8601."""
    commit: str | None
    versions: dict[str, str]
    system: str
    cores: int
    load_average: tuple[float, float]
    """Over one minute, before and after: whatever else the machine did is in the figures."""


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

    The runs are left in `folder`, or made in a temporary one and removed. With one worker the
    parts of a turn add up; with more, they lie side by side. Raises `UsageError` where `folder`
    holds something already, and `RuntimeError` where a step did not do what it should have done:
    its figures would be worth nothing.
    """
    if folder is not None and folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty; name a new folder")
    load = os.getloadavg()[0]
    with _place(folder) as place:
        write_suite(place / "suite", problems)
        sample = _measure(place, "sample", "rich", problems, samples, workers)
        refine = _measure(place, "refine", "plain", problems, refine_turns, workers)
    return OverheadFigures(
        sample=sample,
        refine=refine,
        workers=workers,
        created=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        commit=revision(),
        versions={
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in PACKAGES},
        },
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        cores=usable_cores(),
        load_average=(load, os.getloadavg()[0]),
    )


@contextmanager
def _place(folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="overhead-") as temporary:
        yield Path(temporary)


def _measure(
    place: Path,
    strategy: Literal["refine", "sample"],
    display: Literal["rich", "plain"],
    problems: int,
    calls: int,
    workers: int,
) -> StrategyOverhead:
    job = Job(
        kind="drive",
        run=place / strategy,
        suite=place / "suite",
        strategy=strategy,
        budget=calls,
        workers=workers,
        display=display,
    )
    turns = problems * calls
    whole = _done(job)
    _insist(whole.turns == turns, f"{whole.turns} of {turns} turns were recorded")
    began = time.monotonic()
    again = _done(job.model_copy(update={"clocked": False}))
    resume_seconds = time.monotonic() - began
    _insist(again.recorded == turns and again.turns == 0, "the finished run took another turn")
    table = _done(job.model_copy(update={"kind": "load"}))
    _insist(table.recorded == turns, f"load_runs found {table.recorded} of {turns} turns")
    disk = _disk_mib(job.run)
    longer = job.model_copy(update={"budget": calls + 1})
    killed = _run(longer.model_copy(update={"kill_at_evaluation": min(3, problems)}))
    _insist(killed is None, "the process that was to kill itself ended in peace")
    began = time.monotonic()
    first = _done(longer.model_copy(update={"only_one_turn": True, "clocked": False}))
    assert first.first_turn_at is not None
    per_turn = 1000 / turns
    wall = {name: seconds * per_turn for name, (seconds, _) in whole.parts.items()}
    cpu = {name: seconds * per_turn for name, (_, seconds) in whole.parts.items()}
    wall["graph"] = workers * whole.seconds * per_turn - sum(wall.values())
    cpu["graph"] = whole.cpu_seconds * per_turn - sum(cpu.values())
    return StrategyOverhead(
        strategy=strategy,
        display=display,
        problems=problems,
        calls=calls,
        turns=turns,
        seconds=whole.seconds,
        ms_a_turn=whole.seconds * per_turn,
        cpu_ms_a_turn=whole.cpu_seconds * per_turn,
        parts={name: Part(wall_ms=wall[name], cpu_ms=cpu[name]) for name in ("graph", *PARTS)},
        fsync_ms=whole.fsync_seconds * per_turn,
        fsyncs_a_turn=whole.fsyncs / turns,
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


def _insist(as_it_should: bool, otherwise: str) -> None:
    if not as_it_should:
        raise RuntimeError(f"{otherwise}; nothing was measured")


def _done(job: Job) -> Measured:
    measured = _run(job)
    _insist(measured is not None, "the measured process was killed")
    assert measured is not None
    return measured


def _run(job: Job) -> Measured | None:
    """Do `job` in a process of its own; None where a signal ended it."""
    file = job.run.with_suffix(".job.json")
    file.write_text(job.model_dump_json())
    found = file.with_suffix(".measured.json")
    found.unlink(missing_ok=True)
    command = [sys.executable, "-m", "experiments.bench.loop.measured_process", str(file)]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "160", "LINES": "50"}
    said = file.with_suffix(".stderr")
    with _screen(said, terminal=job.display == "rich") as screen:
        code = subprocess.run(command, cwd=ROOT, env=environment, stderr=screen).returncode
    if code < 0:
        return None
    words = said.read_text(errors="replace").splitlines()[-1:]
    _insist(code == 0, f"the measured process ended with {code} ({' '.join(words)}; see {said})")
    return Measured.model_validate_json(found.read_text())


@contextmanager
def _screen(file: Path, *, terminal: bool) -> Iterator[IO[bytes] | int]:
    """Where the process shows what it does: `file`, or a terminal whose screen is kept there."""
    with file.open("wb") as kept:
        if not terminal:
            yield kept
            return
        ours, theirs = pty.openpty()
        reader = threading.Thread(target=_keep, args=(ours, kept))
        reader.start()
        try:
            yield theirs
        finally:
            os.close(theirs)
            reader.join()
            os.close(ours)


def _keep(terminal: int, kept: IO[bytes]) -> None:
    while True:
        try:
            shown = os.read(terminal, 65536)
        except OSError:  # Linux says so when nobody holds the other end any more
            return
        if not shown:
            return
        kept.write(shown)


def _disk_mib(run: Path) -> dict[str, float]:
    """By file or folder directly in the run directory, and all together."""
    found = {entry.name: _blocks_mib(entry) for entry in sorted(run.iterdir())}
    return {**found, "all": sum(found.values())}


def _blocks_mib(entry: Path) -> float:
    paths = [entry, *entry.rglob("*")] if entry.is_dir() else [entry]
    return sum(path.stat().st_blocks for path in paths) * 512 / 2**20


def told(figures: OverheadFigures) -> list[str]:
    """The figures as lines for a person, each beside what it should stay below."""
    lines = []
    for run in (figures.sample, figures.refine):
        start, *quarters = run.memory_mib
        parts = [
            f"{name} {part.wall_ms:.1f} ({part.cpu_ms:.1f})" for name, part in run.parts.items()
        ]
        after = " / ".join(f"{mib:.0f}" for mib in quarters)
        lines += [
            f"{run.strategy}: {run.problems} problems x {run.calls} calls = {run.turns:,} turns in"
            f" {run.seconds:.0f} s, {figures.workers} at a time, display {run.display}",
            f"  a turn: {run.ms_a_turn:.1f} ms (bar: 20), {run.cpu_ms_a_turn:.1f} of them of the"
            " processor",
            f"  its parts, in brackets the processor's time: {', '.join(parts)}",
            f"  of the store, waiting for the disk: {run.fsync_ms:.2f} ms in"
            f" {run.fsyncs_a_turn:.1f} fsyncs",
            f"  memory: {start:.0f} MiB before, {after} at each quarter,"
            f" at most {run.peak_memory_mib:.0f} (bar: 1024)",
            f"  again, with nothing to do: {run.resume_seconds:.1f} s (bar: 10)",
            f"  first turn after a kill: {run.first_turn_after_kill_seconds:.1f} s",
            f"  load_runs: {run.load_seconds:.1f} s (bar: 10), at most"
            f" {run.load_peak_memory_mib:.0f} MiB",
            f"  on disk: {run.disk_mib['all']:.0f} MiB",
        ]
    before, after_all = figures.load_average
    lines.append(
        f"{figures.cores} cores, load average {before:.1f} before and {after_all:.1f} after;"
        f" commit {figures.commit}"
    )
    return lines
