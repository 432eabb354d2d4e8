"""`python -m experiments.bench.loop.measured_process JOB`: one job in a process, measured.

So that its memory is its own. `JOB` is a file with a `Job`; what was measured is written beside it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from evaluator.record import Record
from experiments.bench.loop.meter import Meter, memory_mib, peak_memory_mib

if TYPE_CHECKING:
    from agent.config.run_config import RunConfig
    from agent.record.events import Event, Watch


PARTS = ("store", "display", "stand-ins")
"""What is clocked. The rest of a turn is LangGraph and the nodes' own work."""


class Job(Record):
    """What the process does: take a run to its budget, or read it as a table."""

    kind: Literal["drive", "load"]
    run: Path
    """The run directory."""
    suite: Path
    strategy: Literal["refine", "sample"]
    budget: int
    workers: int
    display: Literal["rich", "plain"]
    clocked: bool = True
    """Put clocks around the parts of a turn. They import what a finished run would not."""
    kill_at_evaluation: int | None = None
    """SIGKILL itself when so many evaluations have begun."""
    only_one_turn: bool = False
    """Stop, as after Ctrl-C, once a turn is recorded."""


class Measured(Record):
    """What one job took."""

    turns: int = 0
    """Recorded by this process."""
    calls: int = 0
    """To the model."""
    recorded: int = 0
    """Turns in the run when the process ended."""
    seconds: float
    """From opening the run to the end of the summary, or of the table."""
    cpu_seconds: float
    """Of the whole process, its start included."""
    parts: dict[str, tuple[float, float]] = Field(default_factory=dict)
    """Wall and processor seconds of `PARTS`, summed over threads; they exclude each other."""
    fsync_seconds: float = 0.0
    """Waiting for the disk, within `store`."""
    fsyncs: int = 0
    first_turn_at: float | None = None
    """When the first turn was recorded, by the system's monotonic clock."""
    memory_mib: tuple[float, ...] = ()
    """Before the first turn, at a quarter, half and three quarters of them, and after the last."""
    peak_memory_mib: float


class Milestones:
    """Passes events on to the display, and notes memory on the way."""

    def __init__(self, display: Watch, turns: int, stop: threading.Event | None) -> None:
        self._display = display
        self._stop = stop
        self._marks = [turns * quarter // 4 for quarter in range(1, 5)]
        self.turns = 0
        self.memory = [memory_mib()]
        self.first_turn_at: float | None = None

    def notice(self, event: Event) -> None:
        """Count recorded turns."""
        from agent.record.events import TurnRecorded

        self._display.notice(event)
        if not isinstance(event, TurnRecorded):
            return
        self.turns += 1
        if self.turns == 1:
            self.first_turn_at = time.monotonic()
        self.memory += [memory_mib()] * self._marks.count(self.turns)
        if self._stop is not None:
            self._stop.set()


def drive_run(job: Job) -> Measured:
    """What `agent.run` does, with stand-ins for the model and the judge."""
    from agent.loop.drive import drive
    from agent.record.store import open_store
    from agent.resolution import Resolution
    from agent.view.display import open_display
    from agent.view.summary import tell
    from experiments.bench.loop.stand_ins import InstantJudge, InstantModel, instant_profile
    from problems.loader import load_suite

    times, syncs = Meter(), Meter()
    if job.clocked:
        _clock(times, syncs)
    problems = load_suite(job.suite)
    config = _config(job, [problem.id for problem in problems])
    client, evaluations, stop = InstantModel(), 0, threading.Event()

    def before() -> None:
        nonlocal evaluations
        evaluations += 1
        if evaluations == job.kill_at_evaluation:
            os.kill(os.getpid(), signal.SIGKILL)

    began = time.monotonic()
    with open_store(config) as store, open_display(job.display, config) as display:
        turns = len(problems) * job.budget
        watch = Milestones(display, turns, stop if job.only_one_turn else None)
        result = drive(
            config,
            problems,
            client=client,
            executor=InstantJudge(before),
            profiler=instant_profile,
            store=store,
            watch=watch,
            stop=stop,
        )
    tell(result, Resolution(config, tuple(problems)), as_json=False, require_correct=False)
    return Measured(
        turns=watch.turns,
        calls=client.calls,
        recorded=sum(problem.turns for problem in result.problems),
        seconds=time.monotonic() - began,
        cpu_seconds=time.process_time(),
        parts={part: (times.seconds[part], times.cpu_seconds[part]) for part in PARTS},
        fsync_seconds=syncs.seconds["fsync"],
        fsyncs=syncs.calls["fsync"],
        first_turn_at=watch.first_turn_at,
        memory_mib=tuple(watch.memory),
        peak_memory_mib=peak_memory_mib(),
    )


def load_run(job: Job) -> Measured:
    """Read the run as a table."""
    from experiments.runs import load_runs

    began = time.monotonic()
    table = load_runs(job.run)
    return Measured(
        recorded=len(table),
        seconds=time.monotonic() - began,
        cpu_seconds=time.process_time(),
        peak_memory_mib=peak_memory_mib(),
    )


def _config(job: Job, problems: list[str]) -> RunConfig:
    from agent.config.feedback_spec import FeedbackSpec
    from agent.config.run_config import RunConfig, Strategy

    return RunConfig(
        strategy=Strategy(job.strategy),
        feedback=FeedbackSpec.parse("none" if job.strategy == "sample" else "G+E+P"),
        problems=tuple(problems),
        suite=job.suite,
        model="stand-in/instant",
        budget=job.budget,
        workers=job.workers,
        output=job.run,
    )


def _clock(times: Meter, syncs: Meter) -> None:
    """Put clocks around what a turn goes through. `in_flight` is a block in which others work; what
    it does to the store is clocked as `journal`."""
    from rich.live import Live

    from agent.record.run_files import RunFiles
    from agent.record.store import RunStore
    from agent.record.turn_log import TurnLog
    from agent.view.display import PlainLines
    from agent.view.live_table import LiveTable
    from experiments.bench.loop.stand_ins import InstantJudge, InstantModel

    times.clock("store", RunStore, "pending_turn", "journal", "save_prompt", "save_completion")
    times.clock("store", RunStore, "has_completion", "save_kernel", "save_profile", "record")
    times.clock("store", RunStore, "keep_best", "completion", "save_result", "add_environment")
    times.clock("store", RunFiles, "kernel", "prompt")
    times.clock("store", TurnLog, "__init__", "of", "next_turn")
    times.clock("display", PlainLines, "notice")
    times.clock("display", LiveTable, "notice")
    times.clock("display", Live, "refresh")
    times.clock("stand-ins", InstantModel, "complete")
    times.clock("stand-ins", InstantJudge, "evaluate")
    syncs.clock("fsync", os, "fsync")


def main(file: Path) -> None:
    """Do the job in `file` and write `Measured` beside it."""
    job = Job.model_validate_json(file.read_text())
    measured = drive_run(job) if job.kind == "drive" else load_run(job)
    file.with_suffix(".measured.json").write_text(measured.model_dump_json())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
