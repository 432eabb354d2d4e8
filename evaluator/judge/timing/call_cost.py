"""What a call costs that computes nothing: the start signal, and the calling of an operator."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from evaluator.judge.context.baselines import no_build
from evaluator.judge.context.construction import Construction
from evaluator.judge.context.problem_context import ProblemContext

_FIRST, _FEWEST, _MOST = 10, 9, 30
"""Calls that warm up, and the fewest and the most that count."""
_FLUSHED_S = 0.5
"""After that the fewest suffice: with the cache of a large host, a flush takes 50 to 100 ms."""
_FRESH_S = 60.0


@dataclass(frozen=True)
class CallCost:
    """Microseconds, as the timed calls of any module have them."""

    signal_us: float
    """The start signal and its answer, to be taken off every call's time; 0 on a GPU."""
    operator_us: float
    """One operator on one element, caches flushed before; 0 on a GPU, where the time as called is
    measured beside the time on the device."""


_known: dict[tuple[str, int], tuple[CallCost, float]] = {}
"""By device and number of threads, with the time at which it was measured."""


def call_cost(context: ProblemContext, *, anew: bool = False) -> CallCost:
    """Measured once for each device and number of threads, in workers of its own.

    Each is the least of many: whatever else was in a call's way then would count in all verdicts
    from now on. `anew`: once more, where that was a minute ago, and what is less counts.
    """
    if context.device.type == "cuda":
        return CallCost(0.0, 0.0)
    key = (str(context.device), context.workers.threads)
    cost, measured = _known.get(key, (CallCost(math.inf, math.inf), -math.inf))
    if measured < (time.monotonic() - _FRESH_S if anew else 0.0):
        signal_us = min(_times_us(context, "return self.one", flushed=False))
        called_us = min(_times_us(context, "return self.one + self.one", flushed=True))
        operator_us = max(0.0, called_us - signal_us)
        cost = CallCost(min(cost.signal_us, signal_us), min(cost.operator_us, operator_us))
        _known[key] = cost, time.monotonic()
    return cost


def _times_us(context: ProblemContext, forward: str, *, flushed: bool) -> list[float]:
    runner = context.workers.new()
    try:
        context.workers.load(
            runner, _SOURCE.format(forward=forward), "ModelNew", triton=False, build=no_build
        )
        Construction(context.setup, {}).on(runner)
        order = context.draws.plain().order
        context.workers.settle()
        for _ in range(_FIRST):
            with runner.call(order):
                pass
        times: list[float] = []
        end = time.monotonic() + _FLUSHED_S
        fewest = _FEWEST if flushed else _MOST
        while len(times) < fewest or (len(times) < _MOST and time.monotonic() < end):
            if flushed:
                context.flush.run()
            with runner.call(order) as call:
                times.append(call.forward_us)
    finally:
        runner.close()
    return times


_SOURCE = """
import torch

class ModelNew(torch.nn.Module):
    def __init__(self, *arguments):
        super().__init__()
        self.register_buffer("one", torch.ones(()))

    def forward(self, *arguments):
        {forward}
"""
