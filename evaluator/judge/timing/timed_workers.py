"""A candidate timed in several fresh workers, beside as many of eager's.

Where a process's memory happens to lie, and what an autotuner picks, differs from process to
process: one pair of workers does not show it. So each pair is one measurement.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Protocol

import torch

from evaluator.evaluation import Verdict
from evaluator.hardware.host_memory import available_bytes
from evaluator.judge.context.problem_context import ProblemContext
from evaluator.judge.context.problem_setup import CONTEXT_BYTES
from evaluator.judge.timing.interval import over_workers, speedup_verdict
from evaluator.judge.timing.sampling import Sampling
from evaluator.judge.timing.samplings import Samplings
from evaluator.judge.timing.stopping_rule import CLEAR_RATIO, is_slow
from evaluator.judge.workers.module_runner import ModuleRunner
from evaluator.protocol import RULES
from evaluator.settings import BaselineName, Settings

_PER_SECOND = 4
"""Workers for each second of timing."""
_FEWEST, _MOST = 3, 6
"""With fewer, chance alone may bring the workers together."""


class TimedCandidate(Protocol):
    """A candidate that can be timed in several workers. Each method raises `Rejection`."""

    def sampled(
        self,
        context: ProblemContext,
        runner: ModuleRunner,
        seconds: float,
        before: Sequence[Sampling],
        several: bool,
    ) -> Sampling:
        """Calls of one worker beside the baselines', timed for `seconds`, after those of the
        workers before it. `several`: it is one of several."""

    def further_workers(
        self, context: ProblemContext, runner: ModuleRunner, count: int
    ) -> AbstractContextManager[list[ModuleRunner]]:
        """So many fresh workers with the module of `runner`. Raises `DeviceError`, too."""

    def first_calls_of_another(self, context: ProblemContext, runner: ModuleRunner) -> None:
        """The first calls of a further worker, verified."""


def most_workers(settings: Settings) -> int:
    count = min(_MOST, round(_PER_SECOND * settings.timing_seconds))
    return 1 if count < _FEWEST or RULES[settings.protocol].in_one_process else count


def sampled_in_workers(
    context: ProblemContext, candidate: TimedCandidate, runner: ModuleRunner
) -> tuple[list[Sampling], list[str]]:
    """Samplings of `runner`, and of further workers of its candidate until the interval is narrow;
    and what a reader should know about them.

    At most as many as the time allows, a quarter of a second each; those that surely follow start
    together. One alone in half a second, under KernelBench's protocol, which measures in one
    process, where there is no memory for another, and on a GPU for a kernel that is far slower than
    its baselines. Raises `Rejection`.
    """
    most = count = most_workers(context.settings)
    context.baselines.start_eager(0)
    if most > 1 and not _room_for(context, runner, 1, 1):
        count = 1
    seconds = context.settings.timing_seconds / count
    first = candidate.sampled(context, runner, seconds, (), count > 1)
    if count > 1 and is_far_slower(first, context.settings):
        return [replace(first, stopped="slow")], []
    samplings = [first]
    while len(samplings) < count and not _is_enough(context, samplings):
        timed = len(samplings)
        wanted = (_FEWEST if timed < _FEWEST else count) - timed
        more = _room_for(context, runner, timed, wanted)
        if not more:
            count = timed
            break
        context.baselines.start_eager(timed, more)
        with candidate.further_workers(context, runner, more) as others:
            for waiting in (runner, *others):
                waiting.stand_still()
            for other in others:
                if not _is_enough(context, samplings):
                    candidate.first_calls_of_another(context, other)
                    before = tuple(samplings)
                    samplings.append(candidate.sampled(context, other, seconds, before, True))
                with context.memory.settled_after():
                    other.close()
    if context.sequence is not None and len(samplings) > 1:
        runner.construct_again()
        context.sequence.begin(runner)
    if count < most:
        return samplings, [f"no memory for more workers: timed in {count} of {most}"]
    return samplings, []


def is_far_slower(sampling: Sampling, settings: Settings) -> bool:
    """Than each baseline, on streams that could be held, and undisturbed; never on a CPU."""
    alone = Samplings([sampling], torch.device(settings.device))
    return (
        alone.all_held
        and not alone.restless
        and all(is_slow(alone.ratios(name)[0], settings) for name in sampling.baselines)
    )


def _is_enough(context: ProblemContext, samplings: list[Sampling]) -> bool:
    if len(samplings) < _FEWEST:
        return False
    ratios = Samplings(samplings, context.device).ratios(BaselineName.EAGER)
    interval = over_workers(ratios)
    if interval.relative_width < context.settings.relative_width:
        return True
    is_far = not 1 / CLEAR_RATIO < interval.value < CLEAR_RATIO
    decided = speedup_verdict(ratios, 0.0) in (Verdict.FASTER, Verdict.SLOWER)
    return is_far and decided and interval.relative_width < context.settings.clear_width


def _room_for(context: ProblemContext, runner: ModuleRunner, timed: int, wanted: int) -> int:
    """How many of the wanted workers find memory. Where it is short, eager's workers beside the
    earlier ones end: an interval over two workers is as good as none."""
    sizes = range(wanted, 0, -1)
    more = next((n for n in sizes if _has_room(context, runner, timed, n)), 0)
    ending = context.baselines.further
    if (
        more
        or timed >= _FEWEST
        or not ending
        or not _are_free(context, [runner, *ending[:1]], ending)
    ):
        return more
    with context.memory.settled_after():
        context.baselines.end_further()
    return int(_has_room(context, runner, timed, 1))


def _has_room(context: ProblemContext, runner: ModuleRunner, timed: int, more: int) -> bool:
    """Whether `more` workers of the candidate find memory, with one of eager beside each,
    and the judge finds enough to verify calls."""
    eager = context.baselines.eager(0)
    missing = len(context.baselines.missing_eager(timed, more))
    return _are_free(context, [runner] * more + [eager] * missing)


def _are_free(
    context: ProblemContext, like: list[ModuleRunner], ending: Sequence[ModuleRunner] = ()
) -> bool:
    """Whether workers like these find memory once those that are `ending` have gone."""
    on_gpu = context.device.type == "cuda"

    def size(runners: Sequence[ModuleRunner]) -> int:
        each = [(runner.memory_bytes or 0) + runner.slot_bytes for runner in runners]
        return sum(each) + len(each) * CONTEXT_BYTES * on_gpu

    wanted = size(like) - size(ending)
    if on_gpu:
        return context.memory.has_free(wanted + context.setup.bytes_to_verify())
    free = available_bytes()
    return free is None or free > 2 * wanted
