"""What the benches over a whole suite share: which tasks, on what device, and for how long."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from evaluator.check import request_for
from evaluator.evaluation import EvaluationRequest
from evaluator.executor.local import LocalExecutor
from evaluator.hardware.device_choice import resolve_device
from evaluator.settings import Settings
from experiments.bench.speed.warm_up import start
from experiments.bench.suites.machine import machine
from experiments.bench.suites.result_lines import Part
from experiments.bench.suites.shrunk import shrunk
from problems.loader import load_suite, select
from problems.problem import Problem

Suite = Annotated[Path, typer.Option(help="A folder of tasks in KernelBench's format.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda:N.")]
Only = Annotated[str | None, typer.Option(help="A regular expression, searched for in ids.")]
TimingSeconds = Annotated[float, typer.Option(help="Longest time spent on timing, each.")]
LimitS = Annotated[
    float | None,
    typer.Option("--seconds", help="Stop in time for this; the same command goes on."),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="JSON lines; a table goes beside them as .md."),
]
Shrink = Annotated[
    int | None,
    typer.Option(help="For trials: cut module-level integer constants to this."),
]


@dataclass
class SuiteRun:
    """The tasks of one command and the settings that all are judged with."""

    problems: list[Problem]
    settings: Settings
    limit_s: float | None
    shrink: int | None
    _begin: float = field(default_factory=time.monotonic)

    def request(self, source: str, problem: Problem) -> EvaluationRequest:
        """What an executor is asked about one candidate."""
        return request_for(source, problem, self.settings)

    def reference(self, problem: Problem) -> str:
        """The task's source as the judge sees it."""
        return self.request("", problem).reference

    def until_time_is_up(self, problems: list[Problem]) -> Iterator[Problem]:
        """One task after the other, while the next, if it takes as long as the longest so far,
        ends in time."""
        longest = 0.0
        for problem in problems:
            begin = time.monotonic()
            if self.limit_s is not None and begin - self._begin + longest > self.limit_s:
                return
            yield problem
            longest = max(longest, time.monotonic() - begin)

    @contextmanager
    def executor(self) -> Iterator[LocalExecutor]:
        """A fresh judge whose processes have started, kept over all tasks."""
        with LocalExecutor(self.settings.device) as executor:
            start(executor, self.settings)
            yield executor

    def part(self) -> Part:
        """Where and how this command measures."""
        return Part(
            machine=machine([self.settings.device]),
            timing_seconds=self.settings.timing_seconds,
            shrink=self.shrink,
        )


def suite_run(
    suite: Path,
    device: str,
    only: str | None,
    timing_seconds: float,
    limit_s: float | None,
    shrink: int | None,
) -> SuiteRun:
    """Raises `UsageError` for a folder, a device or an expression that can't be used."""
    problems = select(load_suite(suite), filter=only)
    return SuiteRun(
        problems=[shrunk(p, shrink) for p in problems] if shrink is not None else problems,
        settings=Settings(
            device=resolve_device(device), timing_seconds=timing_seconds, audit="never"
        ),
        limit_s=limit_s,
        shrink=shrink,
    )
