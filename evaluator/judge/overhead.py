"""What the start signal and its answer cost on a CPU, to be taken off every call's time."""

from __future__ import annotations

from statistics import median

from evaluator.judge.bench import Bench, Draw, no_build
from evaluator.judge.side import Side

_CALLS, _FIRST = 40, 10
_known_us: dict[int, float] = {}


def signal_overhead_us(bench: Bench) -> float:
    """The median over calls of an empty module in a worker of its own; 0 on a GPU.

    Measured once for each number of threads, in microseconds.
    """
    if bench.device.type != "cpu":
        return 0.0
    key = bench.threads
    if key not in _known_us:
        side = bench.new_side()
        try:
            bench.load(side, _EMPTY, "ModelNew", triton=False, build=no_build)
            bench.construct(side, {})
            draw = bench.draw()
            times = [_one_call_us(side, draw) for _ in range(_CALLS)]
        finally:
            side.close()
        _known_us[key] = median(times[_FIRST:])
    return _known_us[key]


def _one_call_us(side: Side, draw: Draw) -> float:
    with side.call(draw.order) as call:
        return call.forward_us


_EMPTY = """
import torch

class ModelNew(torch.nn.Module):
    def __init__(self, *arguments):
        super().__init__()
        self.nothing = torch.zeros(())

    def forward(self, *arguments):
        return self.nothing
"""
