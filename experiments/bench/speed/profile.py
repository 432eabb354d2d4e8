"""What `--feedback P` adds to a turn: wall seconds of a profile after the verdict, by stages.

Candidates of the catalogue that are correct, each judged and then profiled as a run does it: by one
`LocalExecutor` and, in one session, the profiler beside it, one turn after the other. As in a run,
the first profile's process is started when the session begins; before each later one there is as
much time as its judging takes, and in a run the model's answer as well.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from statistics import median

from evaluator.collect.ncu_session import NcuSession
from evaluator.evaluation import Status
from evaluator.executor.local import LocalExecutor
from evaluator.record import Record
from evaluator.settings import Settings
from experiments.bench.speed.catalogue import BenchCandidate, catalogue, runnable
from experiments.bench.speed.warm_up import warm_up
from experiments.bench.suites.machine import Machine, machine
from problems.errors import UsageError
from tools.profile import prepare, profile


class ProfiledTurn(Record):
    """One candidate's profile."""

    name: str
    problem: str
    judging_s: float
    """Of the turn's other part, which came before: build, verdict and time."""
    profile_s: float
    """What P added to the turn: from the verdict to the advice, in wall seconds."""
    stages: dict[str, float]
    """As in `Collected.seconds`."""
    rung: str
    rung_reason: str


class ProfileFigures(Record):
    """All turns of a measurement, in their order."""

    machine: Machine
    device: str
    timing_seconds: float
    turns: tuple[ProfiledTurn, ...]
    first_s: float
    """Of the first turn: what it makes ready once is in it."""
    later_median_s: float
    later_most_s: float
    """These two: of the others."""


def measure_profile(
    device: str = "cpu", *, candidates: int = 10, timing_seconds: float = 1.0
) -> ProfileFigures:
    """Judge and profile so many candidates, at least two.

    Raises `UsageError` where there are not so many, and where one is not correct here.
    """
    wanted = _correct_ones(device, candidates)
    settings = Settings(device=device, timing_seconds=timing_seconds, audit="never")
    here = machine([device])
    with LocalExecutor(device) as executor, closing(NcuSession()) as session:
        prepare(session, device)
        warm_up(executor, settings)
        turns = []
        for candidate in wanted:
            begin = time.monotonic()
            request = candidate.request(settings)
            evaluation = executor.evaluate(request)
            if evaluation.status is not Status.CORRECT:
                raise UsageError(f"{candidate.name} is {evaluation.status}: {evaluation.message}")
            judged = time.monotonic()
            with executor.visited() as where:
                found = profile(request.on(where), evaluation, session=session)
            turns.append(
                ProfiledTurn(
                    name=candidate.name,
                    problem=candidate.problem.id,
                    judging_s=judged - begin,
                    profile_s=time.monotonic() - judged,
                    stages=found.stages,
                    rung=found.rung,
                    rung_reason=found.rung_reason,
                )
            )
    return figures_of(here, device, timing_seconds, turns)


def figures_of(
    here: Machine, device: str, timing_seconds: float, turns: Sequence[ProfiledTurn]
) -> ProfileFigures:
    """The turns with what they come to."""
    first, *later = [turn.profile_s for turn in turns]
    return ProfileFigures(
        machine=here,
        device=device,
        timing_seconds=timing_seconds,
        turns=tuple(turns),
        first_s=first,
        later_median_s=median(later),
        later_most_s=max(later),
    )


def _correct_ones(device: str, candidates: int) -> Sequence[BenchCandidate]:
    """Of the first backend that runs on the device: of a GPU, CUDA."""
    there = catalogue(runnable(device)[:1])
    right = [candidate for candidate in there if candidate.expected is Status.CORRECT]
    if not 2 <= candidates <= len(right):
        raise UsageError(f"--candidates must be 2 to {len(right)} here: so many are correct")
    return right[:candidates]


def told(figures: ProfileFigures) -> list[str]:
    """The figures for a person."""
    names = list(dict.fromkeys(name for turn in figures.turns for name in turn.stages))
    columns = "".join(f"{name:>9}" for name in names)
    lines = [str(figures.machine), f"{'candidate':<32}{'rung':<13}{'P adds s':>9}{columns}"]
    for turn in figures.turns:
        stages = "".join(f"{turn.stages.get(name, 0.0):>9.2f}" for name in names)
        lines.append(f"{turn.name:<32}{turn.rung:<13}{turn.profile_s:>9.2f}{stages}")
    lines.append(
        f"P adds {figures.first_s:.1f} s to the first turn, to the {len(figures.turns) - 1} later"
        f" ones {figures.later_median_s:.1f} s in the middle and {figures.later_most_s:.1f} s at"
        " most (bar: 6 on an H200)"
    )
    if reasons := sorted({turn.rung_reason for turn in figures.turns if turn.rung_reason}):
        lines.append(f"why no better profiler: {' | '.join(reasons)}")
    return lines
