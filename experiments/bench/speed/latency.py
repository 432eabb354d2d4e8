"""The latency of a turn: plain PyTorch against our executor, candidate by candidate.

Plain is a fresh process that does what KernelBench's evaluation does (plain_process.py). Ours is
`LocalExecutor.evaluate`, cold (a cache without the candidate; judge, zygote, headers and the
problem are warm, and what warming them took is reported beside it) and warm (the second time).
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Literal

from evaluator.evaluation import Backend, Evaluation, Status
from evaluator.executor.executor import Executor
from evaluator.executor.local import LocalExecutor
from evaluator.record import Record
from evaluator.settings import Settings
from experiments.bench.speed.catalogue import BenchCandidate
from experiments.bench.speed.plain_path import PlainRun, plain_runs
from experiments.bench.speed.warm_up import set_up, warm_up
from experiments.bench.suites.machine import Machine, machine
from problems.errors import UsageError


class OurRun(Record):
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


class CandidateLatency(Record):
    """One candidate, both ways."""

    name: str
    backend: Backend
    problem: str
    expected: Status
    plain: PlainRun
    cold: OurRun
    warm: OurRun
    cold_ratio: float
    """Plain's seconds over those of ours."""
    interval_ratio: float
    """Plain's seconds over ours until the first interval, or until the refusal; cold."""
    warm_ratio: float
    load_average: float
    """Over the last minute when it was done: what else ran then shows in it."""
    part: int
    """Which of the parts it was measured in."""

    @property
    def agrees(self) -> bool:
        """Whether plain, cold and warm came to the same verdict, and to the expected one."""
        return {self.plain.status, self.cold.status, self.warm.status} == {self.expected}


class Part(Record):
    """What was measured by one command."""

    machine: Machine
    warm_up_s: float
    """Once a session: judge, zygote, builders and what stands behind the light headers."""
    problem_s: dict[str, float]
    """Once a problem: reference, inputs and baselines, and PyTorch's own module judged."""


class LatencySummary(Record):
    """One backend's candidates together."""

    backend: Backend
    candidates: int
    plain_s: float
    cold_s: float
    cold_interval_s: float
    warm_s: float
    """These four: medians."""
    cold_ratio: float
    interval_ratio: float
    warm_ratio: float
    """These three: medians of the candidates' ratios."""
    cold_ratio_least: float
    built: int
    light: int
    """Of the built ones, over the light headers."""
    agree: int


class LatencyFigures(Record):
    """All candidates of a measurement, perhaps made in several parts."""

    device: str
    side_by_side: int
    """So many plain processes ran at a time; ours always had the machine to itself."""
    timing_seconds: float
    parts: tuple[Part, ...]
    candidates: tuple[CandidateLatency, ...]
    summary: tuple[LatencySummary, ...]


def measure_latency(
    candidates: Sequence[BenchCandidate],
    *,
    device: str = "cpu",
    side_by_side: int = 1,
    timing_seconds: float = 1.0,
    limit_s: float | None = None,
    before: LatencyFigures | None = None,
    keep: Callable[[LatencyFigures], None] = lambda figures: None,
) -> LatencyFigures:
    """Measure each candidate that `before` lacks, plain in batches of `side_by_side`.

    `keep` gets the figures after each batch. No batch is begun that might end after `limit_s`
    seconds. Raises `UsageError` where `before` is of another device or other settings.
    """
    begin = time.monotonic()
    here = machine([device])
    figures = before or LatencyFigures(
        device=here.devices[0],
        side_by_side=side_by_side,
        timing_seconds=timing_seconds,
        parts=(),
        candidates=(),
        summary=(),
    )
    _refuse_other(figures, here, side_by_side, timing_seconds)
    done = {row.name for row in figures.candidates}
    waiting = [candidate for candidate in candidates if candidate.name not in done]
    if not waiting:
        return figures
    # Deep audits come after the verdict; plain has nothing to set against them.
    settings = Settings(device=device, timing_seconds=timing_seconds, audit="never")
    with (
        tempfile.TemporaryDirectory(prefix="bench-cache-") as cache,
        LocalExecutor(device, cache=Path(cache)) as executor,
    ):
        warm_up_s = warm_up(executor, settings)
        problem_s: dict[str, float] = {}
        longest = 0.0
        for first in range(0, len(waiting), side_by_side):
            batch = waiting[first : first + side_by_side]
            batch_begin = time.monotonic()
            if limit_s is not None and batch_begin - begin + longest > limit_s:
                break
            plain = plain_runs(batch, device, side_by_side)
            rows = []
            for candidate, run in zip(batch, plain, strict=True):
                if candidate.problem.id not in problem_s:
                    problem_s[candidate.problem.id] = set_up(executor, candidate, settings)
                rows.append(_row(candidate, run, executor, settings, len(figures.parts)))
            longest = max(longest, time.monotonic() - batch_begin)
            part = Part(machine=here, warm_up_s=warm_up_s, problem_s=dict(problem_s))
            keep(_with(figures, part, rows))
            figures = figures.model_copy(update={"candidates": (*figures.candidates, *rows)})
        part = Part(machine=here, warm_up_s=warm_up_s, problem_s=problem_s)
        return _with(figures, part, [])


def _refuse_other(
    figures: LatencyFigures, here: Machine, side_by_side: int, timing_seconds: float
) -> None:
    before = (figures.device, figures.side_by_side, figures.timing_seconds)
    now = (here.devices[0], side_by_side, timing_seconds)
    if before != now:
        raise UsageError(
            "the figures in --out are of (device, plain processes at a time, seconds of timing) "
            f"{before}, and this is {now}; give another --out or the same options"
        )


def _with(figures: LatencyFigures, part: Part, rows: list[CandidateLatency]) -> LatencyFigures:
    """The figures with more rows, and with the part that is being measured as their last."""
    every = (*figures.candidates, *rows)
    return figures.model_copy(
        update={
            "parts": (*figures.parts, part),
            "candidates": every,
            "summary": tuple(_summaries(every)),
        }
    )


def _row(
    candidate: BenchCandidate,
    plain: PlainRun,
    executor: Executor,
    settings: Settings,
    part: int,
) -> CandidateLatency:
    cold = _ours(candidate, executor, settings)
    warm = _ours(candidate, executor, settings)
    return CandidateLatency(
        name=candidate.name,
        backend=candidate.backend,
        problem=candidate.problem.id,
        expected=candidate.expected,
        plain=plain,
        cold=cold,
        warm=warm,
        cold_ratio=plain.seconds / cold.seconds,
        interval_ratio=plain.seconds / (cold.until_interval_s or cold.until_verdict_s),
        warm_ratio=plain.seconds / warm.seconds,
        load_average=round(os.getloadavg()[0], 2),
        part=part,
    )


def _ours(candidate: BenchCandidate, executor: Executor, settings: Settings) -> OurRun:
    begin = time.monotonic()
    evaluation = executor.evaluate(candidate.request(settings))
    return our_run(evaluation, time.monotonic() - begin)


def our_run(evaluation: Evaluation, seconds: float) -> OurRun:
    """What an evaluation that took so many wall seconds tells of them."""
    spent, build = evaluation.seconds, evaluation.build
    return OurRun(
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


def _summaries(rows: Sequence[CandidateLatency]) -> Iterator[LatencySummary]:
    for backend in Backend:
        mine = [row for row in rows if row.backend is backend]
        if not mine:
            continue
        built = [row for row in mine if row.cold.headers != "none"]
        yield LatencySummary(
            backend=backend,
            candidates=len(mine),
            plain_s=median(row.plain.seconds for row in mine),
            cold_s=median(row.cold.seconds for row in mine),
            cold_interval_s=median(
                row.cold.until_interval_s or row.cold.until_verdict_s for row in mine
            ),
            warm_s=median(row.warm.seconds for row in mine),
            cold_ratio=median(row.cold_ratio for row in mine),
            interval_ratio=median(row.interval_ratio for row in mine),
            warm_ratio=median(row.warm_ratio for row in mine),
            cold_ratio_least=min(row.cold_ratio for row in mine),
            built=len(built),
            light=sum(row.cold.headers == "light" for row in built),
            agree=sum(row.agrees for row in mine),
        )


def told(figures: LatencyFigures) -> list[str]:
    """The figures for a person."""
    lines = [str(part.machine) for part in figures.parts]
    lines.append(
        f"{'candidate':<36}{'verdict':>14}{'plain s':>9}{'cold s':>8}{'interval':>9}{'warm s':>8}"
        f"{'cold':>8}{'interval':>9}{'warm':>8}  headers"
    )
    for row in figures.candidates:
        until = row.cold.until_interval_s or row.cold.until_verdict_s
        lines.append(
            f"{row.name:<36}{row.cold.status:>14}{row.plain.seconds:>9.1f}{row.cold.seconds:>8.1f}"
            f"{until:>9.1f}{row.warm.seconds:>8.1f}{row.cold_ratio:>7.1f}x{row.interval_ratio:>8.1f}x"
            f"{row.warm_ratio:>7.1f}x  {row.cold.headers}" + ("" if row.agrees else "  DIFFERS")
        )
    loads = [row.load_average for row in figures.candidates]
    if loads:
        lines.append(f"load average meanwhile {min(loads):.1f} to {max(loads):.1f}")
    for each in figures.summary:
        lines.append(
            f"{each.backend}, {each.candidates} candidates: cold {each.cold_ratio:.1f}x (least"
            f" {each.cold_ratio_least:.1f}x), to the first interval {each.interval_ratio:.1f}x,"
            f" warm {each.warm_ratio:.1f}x; {each.light} of {each.built} over the light headers;"
            f" {each.agree} verdicts as plain's and as expected"
        )
    return lines
