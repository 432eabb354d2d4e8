"""The throughput of judging: many distinct candidates at once against one after the other.

What a device does is seen from the evaluations: a judge is at work on a candidate from when the
executor hands it over until it answers.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import count, cycle, islice
from pathlib import Path

from evaluator.evaluation import Backend, Evaluation, Status, Verdict
from evaluator.executor.executor import Executor
from evaluator.executor.local import LocalExecutor
from evaluator.record import Record
from evaluator.settings import Settings
from experiments.bench.speed.catalogue import BenchCandidate, catalogue, own_modules, runnable
from experiments.bench.speed.warm_up import set_up, warm_up
from experiments.bench.suites.machine import Machine, machine
from problems.errors import UsageError
from problems.loader import load_suite, select

PROBLEM = "level1_4_softmax"
_AT_ONCE = 16
"""Candidates in flight for each device: more than an executor has builders."""
_INCLUDE = "#include <torch/extension.h>"


@dataclass(frozen=True)
class Judged:
    """One evaluation and when a judge was at work on it, in seconds of one clock."""

    device: str
    status: Status
    verdict: Verdict | None
    built: bool
    begin: float
    end: float
    device_s: float


class Batch(Record):
    """Candidates judged at once on some devices."""

    devices: int
    candidates: int
    seconds: float
    """From the first request to the last answer."""
    per_minute: float
    correct: int
    built: int
    """Candidates for which a compiler of ours ran."""
    verdicts: dict[str, int]
    """Of the correct ones, by how fast they are beside eager."""
    first_build_s: float
    """Until a judge first had something to do."""
    busy_share: float
    """Of the time after that: a judge was at work on a candidate; mean over the devices."""
    device_share: float
    """Of the time after that: the device was the candidate's or its baseline's."""
    scaling: float
    """The rate over the first device's times the number of devices: 1.0 is linear."""


class OneByOne(Record):
    """A sample of candidates, each asked for when the one before was answered."""

    candidates: int
    seconds: float
    per_minute: float


class ThroughputFigures(Record):
    """How fast many candidates are judged."""

    machine: Machine
    timing_seconds: float
    kernels: tuple[str, ...]
    """What the candidates are copies of, each but for a comment."""
    warm_up_s: float
    batch: Batch
    """On the first device."""
    one_by_one: OneByOne
    """Through the same executor."""
    gain: float
    """The batch's rate over that of one by one, which is extrapolated from the sample."""
    larger: tuple[Batch, ...]
    """On 2, 4, ... and all devices, if there are several; as many candidates for each."""


def measure_throughput(
    devices: Sequence[str] = ("cpu",),
    *,
    kernels: Sequence[BenchCandidate] = (),
    candidates: int = 100,
    sample: int = 10,
    timing_seconds: float = 1.0,
    keep: Callable[[ThroughputFigures], None] = lambda _: None,
) -> ThroughputFigures:
    """Judge `candidates` distinct copies of `kernels` at once, and samples one by one.

    `kernels`: by default the right one for `PROBLEM`. With several devices, others on the first 2,
    4, ... and on all of them, so many for each. `keep` gets the figures so far after each of these.
    """
    here = machine(devices)
    kernels = kernels or [right_kernel(devices[0])]
    fresh = variants(kernels)
    settings = Settings(device=devices[0], timing_seconds=timing_seconds, audit="never")
    with tempfile.TemporaryDirectory(prefix="bench-cache-") as name:
        cache = Path(name)
        with LocalExecutor(devices[0], cache=cache) as executor:
            warm_up_s = _warm_up(executor, 1, settings, kernels)
            slow = _one_by_one(list(islice(fresh, sample)), executor, settings)
            batch = _batch(list(islice(fresh, candidates)), executor, devices[:1], settings)
        figures = ThroughputFigures(
            machine=here,
            timing_seconds=timing_seconds,
            kernels=tuple(kernel.name for kernel in kernels),
            warm_up_s=warm_up_s,
            batch=batch,
            one_by_one=slow,
            gain=batch.per_minute / slow.per_minute,
            larger=(),
        )
        keep(figures)
        for number in doubling(len(devices)):
            with LocalExecutor(*devices[:number], cache=cache) as executor:
                _warm_up(executor, number, settings, kernels)
                more = list(islice(fresh, candidates * number))
                large = _batch(more, executor, devices[:number], settings, batch.per_minute)
            figures = figures.model_copy(update={"larger": (*figures.larger, large)})
            keep(figures)
    return figures


def doubling(devices: int) -> list[int]:
    """2, 4, 8, ... and that number itself; none for one device."""
    powers = [2**n for n in range(1, devices.bit_length()) if 2**n < devices]
    return [*powers, devices] if devices > 1 else []


def kernels_for(
    device: str, backend: str | None, suite: Path | None, only: str | None
) -> list[BenchCandidate]:
    """The own modules of the suite's tasks, or the right kernel for `PROBLEM` of that backend.
    Raises `UsageError` where there is none."""
    if suite is not None:
        return own_modules(select(load_suite(suite), filter=only), device)
    there = runnable(device)
    if backend is not None and backend not in there:
        raise UsageError(
            f"{backend} kernels don't run on {device}; --backend takes {' and '.join(there)} here"
        )
    return [right_kernel(device, None if backend is None else Backend(backend))]


def right_kernel(device: str, backend: Backend | None = None) -> BenchCandidate:
    """The catalogue's right kernel for `PROBLEM`, by default of the first backend that runs on the
    device."""
    there = catalogue([backend or runnable(device)[0]])
    return next(c for c in there if c.problem.id == PROBLEM and c.expected is Status.CORRECT)


def variants(kernels: Sequence[BenchCandidate]) -> Iterator[BenchCandidate]:
    """The kernels, over and over. Each has a comment of its own, also in what is compiled, so that
    each must be compiled: caches go by content."""
    for number, kernel in zip(count(), cycle(kernels), strict=False):
        source = kernel.source.replace(_INCLUDE, f"{_INCLUDE}  // variant {number}")
        yield replace(
            kernel, name=f"{kernel.name}-{number}", source=f"{source}\n# variant {number}\n"
        )


def _warm_up(
    executor: LocalExecutor, devices: int, settings: Settings, kernels: Sequence[BenchCandidate]
) -> float:
    """Every process of the executor runs and has the problems; gives the seconds of the former."""
    seconds = warm_up(executor, settings)
    with ThreadPoolExecutor(devices) as pool:
        for problem in {kernel.problem.id: kernel for kernel in kernels}.values():
            # Asked for at once, so that each goes to another judge.
            list(pool.map(lambda _, one=problem: set_up(executor, one, settings), range(devices)))
    return seconds


def _one_by_one(
    candidates: Sequence[BenchCandidate], executor: Executor, settings: Settings
) -> OneByOne:
    begin = time.monotonic()
    for candidate in candidates:
        _judged(candidate, executor, settings)
    seconds = time.monotonic() - begin
    rate = 60.0 * len(candidates) / seconds
    return OneByOne(candidates=len(candidates), seconds=seconds, per_minute=rate)


def _batch(
    candidates: Sequence[BenchCandidate],
    executor: Executor,
    devices: Sequence[str],
    settings: Settings,
    one_per_minute: float | None = None,
) -> Batch:
    """All of them at once, as many in flight as keep builders and devices busy.

    `one_per_minute`: the rate of one device; None where this is one.
    """
    begin = time.monotonic()
    with ThreadPoolExecutor(_AT_ONCE * len(devices)) as pool:
        judged = list(pool.map(lambda each: _judged(each, executor, settings), candidates))
    seconds = time.monotonic() - begin
    first = min(each.begin for each in judged)
    left = begin + seconds - first
    by_device: dict[str, list[Judged]] = {}
    for each in judged:
        by_device.setdefault(each.device, []).append(each)
    busy = sum(busy_seconds(some) for some in by_device.values())
    rate = 60.0 * len(judged) / seconds
    return Batch(
        devices=len(devices),
        candidates=len(judged),
        seconds=seconds,
        per_minute=rate,
        correct=sum(each.status is Status.CORRECT for each in judged),
        built=sum(each.built for each in judged),
        verdicts=Counter(each.verdict for each in judged if each.verdict is not None),
        first_build_s=first - begin,
        busy_share=busy / len(devices) / left,
        device_share=sum(each.device_s for each in judged) / len(devices) / left,
        scaling=rate / (len(devices) * one_per_minute) if one_per_minute else 1.0,
    )


def _judged(candidate: BenchCandidate, executor: Executor, settings: Settings) -> Judged:
    evaluation = executor.evaluate(candidate.request(settings))
    end = time.monotonic()
    return Judged(
        device=str(evaluation.conditions["judged_on"]),
        status=evaluation.status,
        verdict=evaluation.timing.verdict if evaluation.timing is not None else None,
        built=evaluation.build is not None and not evaluation.build.cached,
        begin=end - at_judge_seconds(evaluation, settings),
        end=end,
        device_s=evaluation.seconds.device,
    )


def at_judge_seconds(evaluation: Evaluation, settings: Settings) -> float:
    """For how long the judge had the candidate: on a CPU it builds, too."""
    spent = evaluation.seconds
    ahead = settings.device != "cpu"
    return spent.judge + spent.audit + (0.0 if ahead else spent.build)


def busy_seconds(judged: Sequence[Judged]) -> float:
    """The time in which at least one of them was being judged."""
    total, until = 0.0, float("-inf")
    for each in sorted(judged, key=lambda each: each.begin):
        total += max(0.0, each.end - max(until, each.begin))
        until = max(until, each.end)
    return total


def throughput_lines(figures: ThroughputFigures) -> list[str]:
    """The figures for a person."""
    lines = [f"{figures.machine}; {figures.timing_seconds:g} s of timing"]
    for batch in (figures.batch, *figures.larger):
        lines.append(
            f"{batch.candidates} candidates at once on {batch.devices} device(s):"
            f" {batch.seconds:.1f} s, {batch.per_minute:.1f} a minute, {batch.correct} correct,"
            f" {batch.built} built; after the first build ({batch.first_build_s:.1f} s) a judge was"
            f" at work {100 * batch.busy_share:.0f} % of the time, the device itself"
            f" {100 * batch.device_share:.0f} % (the candidate and its baseline); beside eager: "
            + ", ".join(f"{number} {verdict}" for verdict, number in batch.verdicts.items())
        )
        if batch.devices > 1:
            lines.append(f"{batch.devices} devices: {100 * batch.scaling:.0f} % of linear")
    slow = figures.one_by_one
    lines.append(
        f"one by one: {slow.candidates} in {slow.seconds:.1f} s, {slow.per_minute:.1f} a minute"
        f" (extrapolated): at once is {figures.gain:.1f}x that"
    )
    return lines
