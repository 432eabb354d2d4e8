"""What a call costs that computes nothing: the start signal, and the calling of an operator."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from evaluator.judge.context.baselines import no_build
from evaluator.judge.context.construction import Construction
from evaluator.judge.context.problem_context import ProblemContext

_FIRST, _EMPTY, _FEWEST = 10, 30, 9
"""Calls that warm up, that compute nothing, and the fewest of an operator after a flush."""
_FLUSHED_S = 0.2
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
    """Measured once for each device and number of threads, in a worker of its own.

    Each is the least of many: whatever else was in a call's way then would count in all verdicts
    from now on. `anew`: once more, where that was a minute ago, and what is less counts.
    """
    if context.device.type == "cuda":
        return CallCost(0.0, 0.0)
    key = (str(context.device), context.workers.threads)
    cost, measured = _known.get(key, (CallCost(math.inf, math.inf), -math.inf))
    if measured < (time.monotonic() - _FRESH_S if anew else 0.0):
        signal_us, called_us = map(min, _times_us(context))
        operator_us = max(0.0, called_us - signal_us)
        cost = CallCost(min(cost.signal_us, signal_us), min(cost.operator_us, operator_us))
        _known[key] = cost, time.monotonic()
    return cost


def _times_us(context: ProblemContext) -> tuple[list[float], list[float]]:
    """Of empty calls, and of those of one operator after a flush."""
    runner = context.workers.new()
    try:
        context.workers.load(runner, _SOURCE, "ModelNew", triton=False, build=no_build)
        Construction(context.setup, {}).on(runner)
        order = context.draws.plain().order
        context.workers.settle()

        def took_us() -> float:
            with runner.call(order) as call:
                return call.forward_us

        empty_us = [took_us() for _ in range(_FIRST + _EMPTY)][_FIRST:]
        called_us: list[float] = []
        end = time.monotonic() + _FLUSHED_S
        while len(called_us) < _FEWEST or time.monotonic() < end:
            context.flush.run()
            called_us.append(took_us())
        return empty_us, called_us
    finally:
        runner.close()


_SOURCE = f"""
import torch

class ModelNew(torch.nn.Module):
    def __init__(self, *arguments):
        super().__init__()
        self.register_buffer("one", torch.ones(()))
        self.empty = {_FIRST + _EMPTY} * [None]

    def forward(self, *arguments):
        if self.empty:
            self.empty.pop()
            return self.one
        return self.one + self.one
"""
