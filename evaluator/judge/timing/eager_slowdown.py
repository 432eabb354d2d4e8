"""Eager once more, after the candidate's processes have ended: is it faster without them?

On a GPU workers are not stopped between their calls. A thread that launches kernels all the while,
or a kernel that never ends, takes time from the baseline and would make the candidate look faster.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import geometric_mean, median

from evaluator.evaluation import Timing
from evaluator.judge.context.baselines import failures_are_ours
from evaluator.judge.context.problem_context import ProblemContext
from evaluator.judge.timing.samples import Samples
from evaluator.judge.timing.sampling import HOLD_S, Sampling
from evaluator.judge.timing.timing_result import less, undecided
from evaluator.settings import BaselineName

_FEWEST_CALLS, _MOST_CALLS = 3, 11
_MOST_SECONDS = 0.25
_MOST_SLOWED, _USUALLY_SLOWED = 1.1, 1.02
"""Beside the candidate over alone. A GPU that is hotter, or has other clocks, is some percent."""
_FREE_US = 3.0
_MOST_HIDDEN_US = 10.0
"""Of what only the judge's clock sees of eager: a kernel may claim as much less than it takes."""


def beside_eager(
    context: ProblemContext, samplings: Sequence[Sampling], timing: Timing
) -> tuple[Timing, str]:
    """The timing with what is left of its verdict where eager was slower beside the candidate,
    whose workers have ended by now, and a note on that; an empty one where it was not.

    Each worker of eager that still runs is compared with itself. A little slower matters where it
    makes up the speedup. Raises `InfrastructureError`.
    """
    context.workers.settle()
    running = context.baselines.running_eager
    numbers = [number for number in range(len(samplings)) if number in running]
    eager = [running[number] for number in numbers]
    samplings = [samplings[number] for number in numbers]
    alone = [Samples() for _ in eager]
    deadline = time.monotonic() + _MOST_SECONDS
    for number in range(_MOST_CALLS):
        if number >= _FEWEST_CALLS and time.monotonic() > deadline:
            break
        for runner, sampling, calls in zip(eager, samplings, alone, strict=True):
            hold_s = HOLD_S if BaselineName.EAGER in sampling.held else 0.0
            draw = context.draws.plain()
            with (
                failures_are_ours(),
                context.calling(runner, draw, flushes=True, hold_s=hold_s, reads=False) as call,
            ):
                calls.add(call)
    timed = [each.baselines[BaselineName.EAGER] for each in samplings]
    beside = [median(calls.total_us) for calls in timed]
    usual = [median(calls.total_us) for calls in alone]
    slowed = geometric_mean(b / (u + _FREE_US) for b, u in zip(beside, usual, strict=True))
    makes_it_up = slowed > _USUALLY_SLOWED and timing.speedup_low / slowed <= 1
    # Where eager is not held, its calls go through the host, whose way differs by more than this.
    is_held = all(BaselineName.EAGER in each.held for each in samplings)
    pairs = zip(timed, alone, strict=True)
    hidden_us = median(median(b.hidden_us) - median(a.hidden_us) for b, a in pairs)
    if slowed > _MOST_SLOWED or makes_it_up:
        return undecided(timing), (
            f"eager takes {median(usual):.1f} us alone and took {median(beside):.1f} us while this "
            "kernel's process was there: no verdict on speed"
        )
    if not is_held or hidden_us <= _MOST_HIDDEN_US:
        return timing, ""
    return less(timing, timing.latency_us / (timing.latency_us + hidden_us)), (
        f"eager's calls began or ended {hidden_us:.0f} us later while this kernel's process was "
        "there: it may take as much longer than it says"
    )
