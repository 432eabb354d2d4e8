"""The server of verdicts under load: how long answers take, and whether each is the right one."""

from __future__ import annotations

import random
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from evaluator.record import Record
from evaluator.serve.reward_client import LostError, RefusedError
from experiments.bench.serving.known_candidate import KnownCandidate, known_candidates
from experiments.bench.serving.server_process import Holdings, ServerProcess, server_process
from experiments.bench.suites.machine import Machine, machine

_MOST_TOLD = 5


class LoadFigures(Record):
    """So many requests in flight, one candidate each, for some minutes."""

    in_flight: int
    seconds: float
    """From the first request to the last answer."""
    requests: int
    median_s: float
    """From sending a request to its answer."""
    p95_s: float
    lost: int
    """Requests without a verdict: refused, failed on our side, or never answered."""
    swapped: int
    """Verdicts with another status than the candidate's."""
    wrong: tuple[str, ...]
    """The first of the two kinds above."""
    before: Holdings
    after: Holdings


class ServeFigures(Record):
    """All loads, one after the other, on one server."""

    machine: Machine
    timing_seconds: float
    candidates: int
    """Distinct ones, in random order, over and over."""
    loads: tuple[LoadFigures, ...]
    left_behind: int | None
    """Processes of the server that were there after it was told to stop; None: it still runs."""


@dataclass
class _Tally:
    """What the threads of one load have seen."""

    seconds: list[float] = field(default_factory=list)
    lost: int = 0
    swapped: int = 0
    wrong: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, candidate: KnownCandidate, seconds: float, status: str, error: str) -> None:
        """One request, with a status or what kept it from one."""
        with self.lock:
            self.seconds.append(seconds)
            if error:
                self.lost += 1
                self.wrong.append(f"{candidate.name}: {error}")
            elif status != candidate.expected:
                self.swapped += 1
                self.wrong.append(f"{candidate.name}: {status}, not {candidate.expected}")


def measure_serve(
    device: str,
    *,
    minutes: float,
    in_flight: Sequence[int],
    timing_seconds: float,
    keep: Callable[[ServeFigures], None] = lambda figures: None,
) -> ServeFigures:
    """Each load for so many minutes; what is in flight by then is finished and counts. After each
    one `keep` is given the figures so far.

    Before the first one each candidate is judged once, which sets problems up and fills caches.
    """
    here = machine([device])
    known = known_candidates(device)
    with server_process(device, timing_seconds, queue=max(in_flight) + 1) as server:
        for candidate in known:
            _ask(server, candidate, _Tally())
        figures = ServeFigures(
            machine=here,
            timing_seconds=timing_seconds,
            candidates=len(known),
            loads=(),
            left_behind=None,
        )
        for number in in_flight:
            load = _load(server, known, number, 60 * minutes)
            figures = figures.model_copy(update={"loads": (*figures.loads, load)})
            keep(figures)
        return figures.model_copy(update={"left_behind": server.stop()})


def _load(
    server: ServerProcess, known: Sequence[KnownCandidate], in_flight: int, seconds: float
) -> LoadFigures:
    before, tally = server.holdings(), _Tally()
    mixed, mixing = _mixed(known), threading.Lock()
    began = time.monotonic()

    def client() -> None:
        while time.monotonic() < began + seconds:
            with mixing:
                candidate = next(mixed)
            _ask(server, candidate, tally)

    with ThreadPoolExecutor(in_flight) as pool:
        for future in [pool.submit(client) for _ in range(in_flight)]:
            future.result()
    return LoadFigures(
        in_flight=in_flight,
        seconds=time.monotonic() - began,
        requests=len(tally.seconds),
        median_s=statistics.median(tally.seconds),
        p95_s=sorted(tally.seconds)[int(0.95 * (len(tally.seconds) - 1))],
        lost=tally.lost,
        swapped=tally.swapped,
        wrong=tuple(tally.wrong[:_MOST_TOLD]),
        before=before,
        after=server.holdings(),
    )


def _ask(server: ServerProcess, candidate: KnownCandidate, tally: _Tally) -> None:
    began = time.monotonic()
    status, error = "", "no answer"
    try:
        for answer in server.client.evaluate([(candidate.problem, candidate.source)]):
            status = "" if answer.evaluation is None else str(answer.evaluation["status"])
            error = answer.error or ""
    except (RefusedError, LostError) as failure:
        error = str(failure)
    tally.add(candidate, time.monotonic() - began, status, error)


def _mixed(known: Sequence[KnownCandidate]) -> Iterator[KnownCandidate]:
    order = random.Random(0)
    while True:
        yield from order.sample(known, len(known))


def told(figures: ServeFigures) -> list[str]:
    """The figures as lines for a person."""
    lines = [str(figures.machine)]
    for load in figures.loads:
        lines += [
            f"{load.in_flight} in flight: {load.requests} requests in {load.seconds:.0f} s; median"
            f" {load.median_s:.2f} s, 95th percentile {load.p95_s:.2f} s",
            f"  answers lost: {load.lost}, swapped: {load.swapped}",
            *(f"    {each}" for each in load.wrong),
            f"  processes {load.before.processes} -> {load.after.processes}, open files"
            f" {load.before.open_files} -> {load.after.open_files}, memory"
            f" {load.before.memory_mib:.0f} -> {load.after.memory_mib:.0f} MiB",
        ]
    return [*lines, f"processes left behind: {figures.left_behind}"]
