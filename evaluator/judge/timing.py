"""How long a candidate takes beside its baselines: alternating calls, and when to stop."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Literal

import torch

from evaluator.evaluation import BaselineName, BaselineTiming, Timing, Verdict
from evaluator.judge.bench import Bench, Draw, no_build
from evaluator.judge.interval import Interval, median_interval, speedup_verdict
from evaluator.judge.side import Call, Side
from evaluator.judge.speed_of_light import Bounds

_FEWEST_BLOCKS = 10
_LEAST_BLOCKS_EVER = 6
_MOST_BLOCKS = 400
_VERIFIED_PERCENT = 25
_VERIFIED_FIRST = 10
"""So many timed calls are all verified: with few calls, a share of them would leave a chance."""
_SMALLEST_US = 0.05
_COPY_SLACK_US = 50.0
_WALL_SLACK_US = 300.0
_WALL_SLACK_SHARE = 0.3

Verify = Callable[[list[torch.Tensor], Draw], None]


@dataclass
class Samples:
    """Times of one side, one entry a block, in microseconds."""

    total_us: list[float] = field(default_factory=list)
    forward_us: list[float] = field(default_factory=list)
    wall_us: list[float] = field(default_factory=list)

    def add(self, call: Call) -> None:
        """Keep one call's times."""
        self.total_us.append(call.total_us)
        self.forward_us.append(call.forward_us)
        self.wall_us.append(call.wall_us)


@dataclass(frozen=True)
class Sampling:
    """All that was measured, and why it stopped."""

    candidate: Samples
    baselines: dict[BaselineName, Samples]
    stopped: Literal["precise", "time", "calls"]
    overhead_us: float
    device_seconds: float


def sample(
    bench: Bench, candidate: Side, verify: Verify, *, seconds: float, relative_width: float
) -> Sampling:
    """Time the candidate and every baseline in blocks of one call each, in random order.

    All sides of a block get the same fresh inputs, through the same memory, after the caches were
    flushed. About a quarter of the candidate's calls are verified, chosen after each was made.
    """
    sides: dict[BaselineName | None, Side] = {None: candidate}
    for name in bench.settings.baselines:
        side = bench.baseline(name)
        if side is not None:
            sides[name] = side
    samples: dict[BaselineName | None, Samples] = {name: Samples() for name in sides}
    overhead = signal_overhead_us(bench)
    shuffle = random.SystemRandom().shuffle
    begin = time.monotonic()
    busy = 0.0
    stopped: Literal["precise", "time", "calls"] = "calls"
    for block in range(_MOST_BLOCKS):
        draw = bench.draw()
        order: list[BaselineName | None] = list(sides)
        shuffle(order)
        for which in order:
            if bench.reference.changes_inputs:
                draw = Draw(draw.seed, draw.values, bench.lay_again(draw))
            bench.flush_caches()
            sealed = None
            with sides[which].call(draw.order) as call:
                chosen = block < _VERIFIED_FIRST or secrets.randbelow(100) < _VERIFIED_PERCENT
                if which is None and chosen:
                    sealed = candidate.outputs(call.reply, bench.outputs)
            busy += call.wall_us / 1e6
            samples[which].add(call)
            if sealed is not None:
                verify(sealed, draw)
        done = block + 1
        spent = time.monotonic() - begin
        if done >= _LEAST_BLOCKS_EVER and spent > seconds:
            stopped = "time"
            break
        if done >= _FEWEST_BLOCKS and done % 2 == 0:
            ratios = [
                ratio_interval(samples[None], samples[name], overhead, bench.device)
                for name in sides
                if name is not None
            ]
            if ratios and max(r.relative_width for r in ratios) < relative_width:
                stopped = "precise"
                break
    mine = samples.pop(None)
    return Sampling(
        mine, {n: s for n, s in samples.items() if n is not None}, stopped, overhead, busy
    )


def net_us(
    samples: Samples, copy_us: float, overhead_us: float, device: torch.device
) -> list[float]:
    """Times of forward alone, what both sides pay alike taken off.

    On a GPU the copy into the slot belongs to the timed span, so that nothing can be finished
    later; its cost, as the trusted baseline pays it, is subtracted from both sides. On a CPU the
    outputs are read where they lie and only the signal's cost is subtracted; where the system
    forbids that, time for a copy beyond twice the baseline's counts as forward's own.
    """
    if device.type == "cuda":
        return [max(total - copy_us, _SMALLEST_US) for total in samples.total_us]
    times = []
    for forward, total in zip(samples.forward_us, samples.total_us, strict=True):
        late = max(0.0, total - forward - 2 * copy_us - _COPY_SLACK_US) if copy_us else 0.0
        times.append(max(forward + late - overhead_us, _SMALLEST_US))
    return times


def copy_cost_us(baseline: Samples) -> float:
    """What copying the outputs into the slot costs, by a trusted side's own times."""
    pairs = zip(baseline.total_us, baseline.forward_us, strict=True)
    return median([total - forward for total, forward in pairs])


def ratio_interval(
    candidate: Samples, baseline: Samples, overhead_us: float, device: torch.device
) -> Interval:
    """Baseline over candidate, paired by block."""
    copy = copy_cost_us(baseline)
    mine = net_us(candidate, copy, overhead_us, device)
    theirs = net_us(baseline, copy, overhead_us, device)
    return median_interval([b / c for b, c in zip(theirs, mine, strict=True)])


def timing_of(sampling: Sampling, bounds: Bounds, device: torch.device) -> tuple[Timing, list[str]]:
    """The record of a sampling, and what a reader should know about it."""
    notes: list[str] = []
    eager = sampling.baselines[BaselineName.EAGER]
    copy = copy_cost_us(eager)
    latency = median_interval(net_us(sampling.candidate, copy, sampling.overhead_us, device))
    baselines = {}
    for name, samples in sampling.baselines.items():
        ratio = ratio_interval(sampling.candidate, samples, sampling.overhead_us, device)
        baselines[name] = BaselineTiming(
            latency_us=median(net_us(samples, copy_cost_us(samples), sampling.overhead_us, device)),
            speedup=ratio.value,
            speedup_low=ratio.low,
            speedup_high=ratio.high,
            verdict=speedup_verdict(ratio),
            pairs=len(samples.total_us),
        )
    over_eager = baselines[BaselineName.EAGER]
    verdict = over_eager.verdict
    wall_us = None
    if device.type == "cuda":
        wall_us = median(sampling.candidate.wall_us)
        if not _wall_supports(sampling):
            verdict = Verdict.UNCLEAR
            notes.append(
                f"the device time is not borne out by the judge's clock ({wall_us:.0f} us around "
                "the call): no verdict on speed"
            )
    bound_us = bounds.bound_us
    if bound_us is not None and latency.value < bound_us:
        reduced = bounds.bytes_us is not None and bounds.bytes_us < bound_us
        notes.append(
            f"faster than the {bound_us:.1f} us that the reference's own operations take at best: "
            + (
                "algebra has removed some, so the bound counts bytes alone"
                if reduced
                else "the ceilings measured for this device are too low, or the caches helped"
            )
        )
        bound_us = bounds.bytes_us
    timing = Timing(
        verdict=verdict,
        latency_us=latency.value,
        latency_low_us=latency.low,
        latency_high_us=latency.high,
        speedup=over_eager.speedup,
        speedup_low=over_eager.speedup_low,
        speedup_high=over_eager.speedup_high,
        baselines=baselines,
        sol_fraction=bound_us / latency.value if bound_us else None,
        floor_us=bounds.floor_us,
        bound_us=bound_us,
        calls=len(sampling.candidate.total_us),
        stopped=sampling.stopped,
        wall_latency_us=wall_us,
    )
    return timing, notes


def _wall_supports(sampling: Sampling) -> bool:
    """Whether the judge's clock leaves no room for more work than the device times claim.

    Time that the clock saw and the device times do not account for is compared with what the
    trusted baseline shows of it.
    """
    mine = sampling.candidate
    eager = sampling.baselines[BaselineName.EAGER]
    hidden = median([w - t for w, t in zip(mine.wall_us, mine.total_us, strict=True)])
    usual = median([w - t for w, t in zip(eager.wall_us, eager.total_us, strict=True)])
    allowed = usual + _WALL_SLACK_US + _WALL_SLACK_SHARE * median(mine.total_us)
    return hidden <= allowed


_overheads: dict[int, float] = {}


def signal_overhead_us(bench: Bench) -> float:
    """What the start signal and its answer cost on the CPU, by an empty module in a worker."""
    if bench.device.type != "cpu":
        return 0.0
    key = bench.threads
    if key not in _overheads:
        side = bench.new_side()
        try:
            bench.load(side, _EMPTY, "ModelNew", triton=False, build=no_build)
            bench.construct(side, {})
            draw = bench.draw()
            times = [_one_call_us(side, draw) for _ in range(40)]
        finally:
            side.close()
        _overheads[key] = median(times[10:])
    return _overheads[key]


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
