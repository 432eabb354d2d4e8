"""The seconds of a verdict, candidate by candidate.

Cold: the cache lacks the candidate; judge, zygote, headers and the problem are warm. Warm: the same
candidate again.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Literal

from evaluator.evaluation import Backend, Evaluation, Status
from evaluator.executor.executor import Executor
from evaluator.executor.local import LocalExecutor
from evaluator.record import Record
from evaluator.settings import Settings
from experiments.bench.speed.catalogue import BenchCandidate
from experiments.bench.speed.warm_up import set_up, warm_up
from experiments.bench.suites.machine import machine
from experiments.bench.suites.result_lines import Part, ResultLines


class TimedVerdict(Record):
    """One call of `LocalExecutor.evaluate`, in wall seconds."""

    seconds: float
    until_verdict_s: float
    """Until it was known whether the candidate is correct."""
    until_interval_s: float | None
    """Until there was an interval of its speedup too; None for one that is not correct."""
    build_s: float
    status: Status
    reason: str
    headers: Literal["none", "light", "full"]
    cached: bool

    @property
    def until_answer_s(self) -> float:
        """Until the first interval, or until the refusal."""
        return self.until_interval_s or self.until_verdict_s


class LatencyRow(Record):
    """One candidate, judged twice."""

    name: str
    backend: Backend
    problem: str
    expected: Status
    cold: TimedVerdict
    warm: TimedVerdict
    load_average: float
    """Over the last minute when it was done: what else ran then shows in it."""

    @property
    def agrees(self) -> bool:
        """Whether both verdicts are the expected one."""
        return {self.cold.status, self.warm.status} == {self.expected}


def measure_latency(
    candidates: Sequence[BenchCandidate], settings: Settings, lines: ResultLines[LatencyRow]
) -> None:
    """Judge each candidate that has no line yet, twice."""
    done = {row.name for row in lines.rows}
    waiting = [candidate for candidate in candidates if candidate.name not in done]
    if not waiting:
        return
    lines.begin(Part(machine=machine([settings.device]), timing_seconds=settings.timing_seconds))
    with (
        tempfile.TemporaryDirectory(prefix="bench-cache-") as cache,
        LocalExecutor(settings.device, cache=Path(cache)) as executor,
    ):
        warm_up(executor, settings)
        known: set[str] = set()
        for candidate in waiting:
            if candidate.problem.id not in known:
                known.add(candidate.problem.id)
                set_up(executor, candidate, settings)
            lines.add(_row(candidate, executor, settings))


def _row(candidate: BenchCandidate, executor: Executor, settings: Settings) -> LatencyRow:
    cold, warm = (_judged(candidate, executor, settings) for _ in range(2))
    return LatencyRow(
        name=candidate.name,
        backend=candidate.backend,
        problem=candidate.problem.id,
        expected=candidate.expected,
        cold=cold,
        warm=warm,
        load_average=round(os.getloadavg()[0], 2),
    )


def _judged(candidate: BenchCandidate, executor: Executor, settings: Settings) -> TimedVerdict:
    begin = time.monotonic()
    evaluation = executor.evaluate(candidate.request(settings))
    return timed_verdict(evaluation, time.monotonic() - begin)


def timed_verdict(evaluation: Evaluation, seconds: float) -> TimedVerdict:
    """`seconds`: wall seconds of the whole evaluation."""
    spent, build = evaluation.seconds, evaluation.build
    return TimedVerdict(
        seconds=seconds,
        until_verdict_s=seconds - spent.timing - spent.audit,
        until_interval_s=(
            seconds - spent.narrowing - spent.audit if evaluation.timing is not None else None
        ),
        build_s=spent.build,
        status=evaluation.status,
        reason=evaluation.reason,
        headers=build.headers if build is not None else "none",
        cached=build.cached if build is not None else False,
    )


def markdown(parts: Sequence[Part], rows: Sequence[LatencyRow]) -> str:
    """The figures for a person."""
    lines = [
        "# Seconds of a verdict",
        "",
        *dict.fromkeys(map(str, parts)),
        "",
        "| candidate | verdict | build s | until correct or refused s "
        "| until the first interval or refused s | cold s | warm s | headers | load |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- | ---: |",
    ]
    for row in rows:
        cold = row.cold
        differs = "" if row.agrees else f" (not {row.expected}, or {row.warm.status} when warm)"
        lines.append(
            f"| {row.name} | {cold.status}{differs} | {cold.build_s:.1f} "
            f"| {cold.until_verdict_s:.1f} | {cold.until_answer_s:.1f} | {cold.seconds:.1f} "
            f"| {row.warm.seconds:.1f} | {cold.headers} | {row.load_average:.1f} |"
        )
    lines.append("")
    for backend in Backend:
        mine = [row for row in rows if row.backend is backend]
        if mine:
            lines.append(
                f"* {backend}, {len(mine)} candidates, medians:"
                f" {median(row.cold.until_answer_s for row in mine):.1f} s until the first interval"
                f" or the refusal, {median(row.cold.seconds for row in mine):.1f} s cold,"
                f" {median(row.warm.seconds for row in mine):.1f} s warm;"
                f" {sum(row.agrees for row in mine)} verdicts as expected"
            )
    return "\n".join(lines) + "\n"
