"""A candidate timed in several fresh workers, beside as many of eager's.

Where a process's memory happens to lie, and what an autotuner picks, differs from process to
process: one pair of workers does not show it. So each pair is one measurement.
"""

from __future__ import annotations

from evaluator.evaluation import Verdict
from evaluator.hardware.host_memory import available_bytes
from evaluator.judge.context.problem_context import ProblemContext
from evaluator.judge.context.problem_setup import CONTEXT_BYTES
from evaluator.judge.timing.interval import over_workers, speedup_verdict
from evaluator.judge.timing.sampling import Sampling
from evaluator.judge.timing.samplings import Samplings
from evaluator.judge.timing.stopping_rule import CLEAR_RATIO
from evaluator.judge.workers.module_runner import ModuleRunner
from evaluator.protocol import RULES
from evaluator.settings import BaselineName, Settings

_PER_SECOND = 4
"""Workers for each second of timing."""
FEWEST_WORKERS, _MOST = 3, 6
"""With fewer, chance alone may bring the workers together."""
_LARGE_BYTES = 2**30
"""Of what a worker holds: several pairs of such workers at once would take much of a device."""


def most_workers(settings: Settings) -> int:
    count = min(_MOST, round(_PER_SECOND * settings.timing_seconds))
    return 1 if count < FEWEST_WORKERS or RULES[settings.protocol].in_one_process else count


def is_enough(context: ProblemContext, samplings: list[Sampling]) -> bool:
    if len(samplings) < FEWEST_WORKERS:
        return False
    ratios = Samplings(samplings, context.device).ratios(BaselineName.EAGER)
    interval = over_workers(ratios)
    if interval.relative_width < context.settings.relative_width:
        return True
    is_far = not 1 / CLEAR_RATIO < interval.value < CLEAR_RATIO
    decided = speedup_verdict(ratios, 0.0)[0] in (Verdict.FASTER, Verdict.SLOWER)
    return is_far and decided and interval.relative_width < context.settings.clear_width


def is_large(runner: ModuleRunner) -> bool:
    return _held_bytes(runner) > _LARGE_BYTES


def room_for(context: ProblemContext, runner: ModuleRunner, wanted: int) -> int:
    """How many of the wanted workers find memory. Where it is short, eager's workers beside the
    earlier ones end."""
    more = next((n for n in range(wanted, 0, -1) if _has_room(context, runner, n)), 0)
    if not more and len(context.baselines.running_eager) > 1:
        with context.memory.settled_after():
            context.baselines.end_further()
        more = int(_has_room(context, runner, 1))
    return more


def _has_room(context: ProblemContext, runner: ModuleRunner, more: int) -> bool:
    on_gpu = context.device.type == "cuda"
    pair_bytes = sum(map(_held_bytes, (runner, context.baselines.eager(0))))
    wanted = more * (pair_bytes + 2 * CONTEXT_BYTES * on_gpu)
    if on_gpu:
        return context.memory.has_free(wanted + context.setup.bytes_to_verify())
    free = available_bytes()
    return free is None or free > 2 * wanted


def _held_bytes(runner: ModuleRunner) -> int:
    return (runner.memory_bytes or 0) + runner.slot_bytes
