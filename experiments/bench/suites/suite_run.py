"""What the benches over a whole suite share: which tasks, on what device, and for how long."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
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
from experiments.bench.suites.result_lines import Part, ResultLines, Row
from experiments.bench.suites.shrunk import shrunk
from problems.loader import load_suite, select
from problems.problem import Problem

Suite = Annotated[
    Path | None, typer.Option(help="A folder of tasks in KernelBench's format. [our problems]")
]
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

    def waiting(self, done: Collection[str]) -> list[Problem]:
        return [problem for problem in self.problems if problem.id not in done]

    def until_time_is_up(
        self, problems: Sequence[Problem], lines: ResultLines[Row]
    ) -> Iterator[tuple[LocalExecutor, Problem]]:
        """One task after the other, with a judge that is kept over all of them.

        No task is begun that, if it takes as long as the longest so far, would not end in time.
        """
        if not problems:
            return
        device, timing_seconds = self.settings.device, self.settings.timing_seconds
        lines.begin(
            Part(machine=machine([device]), timing_seconds=timing_seconds, shrink=self.shrink)
        )
        longest = 0.0
        with LocalExecutor(device) as executor:
            start(executor, self.settings)
            for problem in problems:
                begin = time.monotonic()
                if self.limit_s is not None and begin - self._begin + longest > self.limit_s:
                    return
                yield executor, problem
                longest = max(longest, time.monotonic() - begin)


def suite_run(
    suite: Path | None,
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
