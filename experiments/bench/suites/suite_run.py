"""What the benches over a whole suite share: which tasks, on what device, and for how long."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from evaluator.check import request_for
from evaluator.command.option import CommandOption, validated
from evaluator.evaluation import EvaluationRequest
from evaluator.executor.local import LocalExecutor
from evaluator.hardware.device_choice import resolve_device
from evaluator.record import Record
from evaluator.settings import Settings
from experiments.bench.speed.warm_up import start
from experiments.bench.suites.machine import machine
from experiments.bench.suites.result_lines import Part, ResultLines, Row
from experiments.bench.suites.shrunk import shrunk
from problems.kernelbench_x import SUITE_HELP
from problems.loader import load_suite, select
from problems.problem import Problem


class SuiteOptions(Record):
    """What a bench over a whole suite takes, whatever it judges."""

    suite: Annotated[
        Path | None,
        CommandOption(SUITE_HELP, "DIR", default="our problems"),
    ] = None
    device: Annotated[str, CommandOption("auto, cpu or cuda:N.", "NAME")] = "auto"
    only: Annotated[
        str | None, CommandOption("A regular expression, searched for in ids.", "TEXT")
    ] = None
    timing_seconds: Annotated[float, CommandOption("Longest time spent on timing, each.", "S")] = (
        0.5
    )
    cases: Annotated[
        int | None,
        CommandOption("Sizes that are timed of a task that lists several.", "N", default="all"),
    ] = None
    limit_s: Annotated[
        float | None,
        CommandOption("Stop in time for this; the same command goes on.", "S", ("--seconds",)),
    ] = None
    out: Annotated[
        Path | None,
        CommandOption("JSON lines; a table goes beside them as .md.", "FILE", ("--out", "-o")),
    ] = None
    shrink: Annotated[
        int | None,
        CommandOption("For trials: cut module-level integer constants to this.", "N"),
    ] = None


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


def suite_run(given: Mapping[str, object]) -> tuple[SuiteRun, Path | None]:
    """A run with these `SuiteOptions`, and where its results go. Raises `UsageError` for a folder,
    a device or an expression that can't be used."""
    asked = validated(SuiteOptions, given)
    problems = select(load_suite(asked.suite), filter=asked.only)
    shrink = asked.shrink
    run = SuiteRun(
        problems=[shrunk(p, shrink) for p in problems] if shrink is not None else problems,
        settings=Settings(
            device=resolve_device(asked.device),
            timing_seconds=asked.timing_seconds,
            timed_cases=asked.cases,
            audit="never",
        ),
        limit_s=asked.limit_s,
        shrink=shrink,
    )
    return run, asked.out
