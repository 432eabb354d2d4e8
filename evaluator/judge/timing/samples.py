"""Times of calls, one list a side, and what of them is forward's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median, quantiles

import torch

from evaluator.judge.timing.interval import median_interval
from evaluator.judge.workers.call import Call

_SMALLEST_US = 0.05
_COPY_SLACK_US = 50.0
_FEWEST_TO_CHARGE = 6
"""With fewer, the interval of a median has no bounds."""
_FREE_US = 20.0
"""Two processes may take times to get ready that differ by so much for no merit of theirs."""
_FREE_HIDDEN_US = 3.0
"""Likewise for the way from the judge's process to another one's on a GPU and back: on an H100 300
us, and 69 of 78 calls were within 2 us of it (`experiments/results/gate-h100.txt`)."""


@dataclass
class Samples:
    """Times of one side, one entry for each block that counts, in microseconds."""

    total_us: list[float] = field(default_factory=list)
    forward_us: list[float] = field(default_factory=list)
    wall_us: list[float] = field(default_factory=list)
    prepare_us: list[float] = field(default_factory=list)

    def add(self, call: Call) -> None:
        """Keep one call's times."""
        self.total_us.append(call.total_us)
        self.forward_us.append(call.forward_us)
        self.wall_us.append(call.wall_us)
        self.prepare_us.append(call.prepare_us)

    @property
    def hidden_us(self) -> list[float]:
        """What the judge's clock saw beyond what the worker says."""
        return [wall - total for wall, total in zip(self.wall_us, self.total_us, strict=True)]

    def left_out_us(self, baseline: Samples, usually_hidden_us: float | None) -> list[float]:
        """What the worker's own times leave out, call by call.

        Time to get ready, less the baseline's in the same blocks: the lower bound of the median
        difference, or what a call took beyond nine of ten of the baseline's; from 20 us on. And
        what is hidden beyond what is usual, on a GPU; from 3 us on.
        """
        if len(self.prepare_us) < _FEWEST_TO_CHARGE:
            return [0.0] * len(self.prepare_us)
        pairs = zip(self.prepare_us, baseline.prepare_us, strict=True)
        usual = median_interval([mine - theirs for mine, theirs in pairs]).low
        most = quantiles(baseline.prepare_us, n=10)[-1]
        early = [_from(_FREE_US, max(usual, mine - most)) for mine in self.prepare_us]
        if usually_hidden_us is None:
            return early
        hidden = [_from(_FREE_HIDDEN_US, mine - usually_hidden_us) for mine in self.hidden_us]
        return [sum(both) for both in zip(early, hidden, strict=True)]

    def with_left_out(self, left_out_us: Sequence[float]) -> Samples:
        """The same, with so much more in each of the worker's own times."""

        def charged(times: list[float]) -> list[float]:
            return [time + more for time, more in zip(times, left_out_us, strict=True)]

        return replace(self, total_us=charged(self.total_us), forward_us=charged(self.forward_us))


def _from(least: float, value: float) -> float:
    return value if value >= least else 0.0


def net_us(
    samples: Samples, copy_us: float, overhead_us: float, device: torch.device
) -> list[float]:
    """Times of forward alone, what both sides pay alike taken off.

    On a GPU the copy into the slot belongs to the timed span, so that nothing can be finished
    later: what it takes beyond what it takes a trusted baseline counts as forward's own. (Forward's
    own events are the lower limit: a call of some microseconds is over before its copy is launched,
    and total less copy would be nothing at all.) On a CPU the outputs are read where they lie and
    only the signal's cost is subtracted; where the system forbids that, time for a copy beyond
    twice the baseline's counts as forward's own.
    """
    times = []
    if device.type == "cuda":
        for forward, total in zip(samples.forward_us, samples.total_us, strict=True):
            times.append(max(forward, total - copy_us, _SMALLEST_US))
        return times
    for forward, total in zip(samples.forward_us, samples.total_us, strict=True):
        late = max(0.0, total - forward - 2 * copy_us - _COPY_SLACK_US) if copy_us else 0.0
        times.append(max(forward + late - overhead_us, _SMALLEST_US))
    return times


def copy_cost_us(baseline: Samples) -> float:
    """What copying the outputs into the slot costs, by a trusted side's own times."""
    pairs = zip(baseline.total_us, baseline.forward_us, strict=True)
    return median([total - forward for total, forward in pairs])


def paired_ratios(
    candidate: Samples, baseline: Samples, overhead_us: float, device: torch.device
) -> list[float]:
    """Baseline over candidate, block by block."""
    copy = copy_cost_us(baseline)
    mine = net_us(candidate, copy, overhead_us, device)
    theirs = net_us(baseline, copy, overhead_us, device)
    return [b / c for b, c in zip(theirs, mine, strict=True)]
