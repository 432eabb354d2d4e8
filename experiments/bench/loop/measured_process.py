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

from evaluator.record import Record

if TYPE_CHECKING:
    from agent.record.events import Event, Watch

Strategy = Literal["refine", "sample"]
Display = Literal["rich", "plain"]


class Job(Record):
    """What the process does with a run."""

    do: Literal["finish", "go on", "be killed", "one turn", "load"]
    """Take it to its budget; the same as a later command; end by SIGKILL in its first evaluation;
    stop, as after Ctrl-C, once a turn is recorded; read it as a table."""
    run: Path
    """The run directory."""
    suite: Path
    strategy: Strategy
    budget: int
    workers: int
    display: Display


class Measured(Record):
    """What one job took."""

    turns: int = 0
    """Recorded by this process."""
    calls: int = 0
    """To the model."""
    recorded: int
    """Turns in the run when the process ended."""
    seconds: float
    """From opening the run to the end of the summary, or of the table."""
    cpu_seconds: float
    """Of the whole process, its start included."""
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
        self.memory = [memory_mib("VmRSS")]
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
        self.memory += [memory_mib("VmRSS")] * self._marks.count(self.turns)
        if self._stop is not None:
            self._stop.set()


def memory_mib(name: Literal["VmRSS", "VmHWM"]) -> float:
    """What this process has in memory now, or the most that it had since it was started."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    raise OSError(f"/proc/self/status names no {name}")


def drive_run(job: Job) -> Measured:
    """What `agent.run` does, with stand-ins for the model and the judge."""
    from agent.config.feedback_spec import FeedbackSpec
    from agent.config.run_config import RunConfig
    from agent.loop.drive import drive
    from agent.record.store import open_store
    from agent.resolution import Resolution
    from agent.view.display import open_display
    from agent.view.summary import tell
    from experiments.bench.loop.stand_ins import InstantJudge, InstantModel, instant_profiler
    from problems.loader import load_suite

    problems = load_suite(job.suite)
    config = RunConfig.model_validate(
        {
            "strategy": job.strategy,
            "feedback": FeedbackSpec.parse("none" if job.strategy == "sample" else "G+E+P"),
            "problems": [problem.id for problem in problems],
            "suite": job.suite,
            "model": "stand-in/instant",
            "budget": job.budget,
            "workers": job.workers,
            "output": job.run,
        }
    )
    if job.do == "finish":
        from agent.loop.graph import build_graph

        build_graph()  # Its imports are no turn's time. A run with nothing left does without them.
    client, stop = InstantModel(), threading.Event()

    def before() -> None:
        if job.do == "be killed":
            os.kill(os.getpid(), signal.SIGKILL)

    began = time.monotonic()
    with open_store(config) as store, open_display(job.display, config) as display:
        turns = len(problems) * job.budget
        watch = Milestones(display, turns, stop if job.do == "one turn" else None)
        result = drive(
            config,
            problems,
            client=client,
            executor=InstantJudge(before),
            profiler=instant_profiler(),
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
        first_turn_at=watch.first_turn_at,
        memory_mib=tuple(watch.memory),
        peak_memory_mib=memory_mib("VmHWM"),
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
        peak_memory_mib=memory_mib("VmHWM"),
    )


def main(file: Path) -> None:
    """Do the job in `file` and write `Measured` beside it."""
    job = Job.model_validate_json(file.read_text())
    measured = load_run(job) if job.do == "load" else drive_run(job)
    file.with_suffix(".measured.json").write_text(measured.model_dump_json())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
