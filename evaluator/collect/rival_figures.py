"""What PyTorch itself reaches: baselines timed beside nothing, and a trace of one eager call."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median

import torch

from evaluator.baseline import flags_words
from evaluator.collect.cpu_trace import collect_calls
from evaluator.collect.torch_trace import collect_torch_trace
from evaluator.errors import ProfilerError
from evaluator.judge.context.baselines import failures_are_ours
from evaluator.judge.context.problem_context import ProblemContext
from evaluator.judge.timing.call_cost import call_cost
from evaluator.judge.timing.samples import Samples, copy_cost_us, net_us
from evaluator.judge.timing.sampling import HOLD_S
from evaluator.judge.workers.module_runner import ModuleRunner
from evaluator.rival import CheckRequest, Rival, RivalKernel
from evaluator.settings import BaselineName

_SECONDS = 0.5
_FEWEST, _MOST = 9, 30


def rival_figures(context: ProblemContext, request: CheckRequest) -> Rival:
    """What is asked for. Raises `InfrastructureError`, and `torch.OutOfMemoryError`."""
    lying = [
        (number, each.stride())
        for number, each in enumerate(context.facts.outputs)
        if not each.is_contiguous() and 0 not in each.stride()
    ]
    known = Rival(needed_bytes=context.setup.needed_bytes, strides=tuple(lying))
    if request.rival == "none" or not request.is_timed:
        return known
    names = [BaselineName.EAGER, *[BaselineName.COMPILE] * (request.rival == "compile")]
    times = _times_us(context, {n: runner for n in names if (runner := context.baselines.get(n))})
    eager_us, bounds = times[BaselineName.EAGER], context.bounds
    notes = [*context.facts.notes, *context.baselines.notes.values()]
    kernels: tuple[RivalKernel, ...] = ()
    try:
        kernels = _kernels(context)
    except ProfilerError as error:
        notes.append(f"no kernels of eager: {error}")
    found = {
        "eager_us": eager_us,
        "flags": flags_words(BaselineName.EAGER, context.settings),
        "compile_us": times.get(BaselineName.COMPILE),
        "bound_us": bounds.bound_us if bounds.bound_us <= eager_us else bounds.bytes_us,
        "bound_rates": bounds.rates,
        "attainable_us": bounds.attainable_us if bounds.attainable_us <= eager_us else None,
        "kernels": kernels,
        "notes": tuple(notes),
    }
    return known.model_copy(update=found)


def _times_us(
    context: ProblemContext, runners: Mapping[BaselineName, ModuleRunner]
) -> dict[BaselineName, float]:
    """Medians of alternating calls; all as called where one of them waits for the device."""
    cost = call_cost(context)
    context.workers.settle()
    context.memory.settle()
    on_device = context.device.type == "cuda" and not context.rules.in_one_process
    samples: dict[BaselineName, Samples] = {}
    end, made = time.monotonic() + _SECONDS, 0
    while made < _FEWEST or (made < _MOST and time.monotonic() < end):
        for name, runner in runners.items():
            draw, hold_s = context.draws.plain(), HOLD_S * on_device
            with (
                failures_are_ours(),
                context.calling(runner, draw, flushes=True, hold_s=hold_s, reads=False) as call,
            ):
                samples.setdefault(name, Samples()).add(call)
            if on_device and not call.was_held:
                on_device, made, samples = False, -1, {}
                break
        made += 1
    return {
        name: median(net_us(each, copy_cost_us(each), cost, context.device))
        for name, each in samples.items()
    }


def _kernels(context: ProblemContext) -> tuple[RivalKernel, ...]:
    """Kernels and copies of an eager call, on a CPU operators, the longest first."""
    reference = context.reference
    values = context.draws.values_of(context.draws.plain())

    def call() -> object:
        with torch.no_grad(), reference.flags.added():
            return reference.model(*values)

    with reference.undoing(reference.model), tempfile.TemporaryDirectory() as folder:
        if context.device.type == "cpu":
            quickest = min(collect_calls(call, ()), key=lambda traced: traced.wall_us)
            found = [(each.name, each.calls, each.time_us) for each in quickest.operators]
        else:
            trace = collect_torch_trace(call, sm_count=0, folder=Path(folder)).gpu
            assert trace is not None
            found = [(each.name, each.launches, each.time_us) for each in trace.kernels]
    whole_us = sum(us for _, _, us in found) or 1.0
    return tuple(
        RivalKernel(name=name, launches=launches, time_us=us, share=us / whole_us)
        for name, launches, us in found
    )
