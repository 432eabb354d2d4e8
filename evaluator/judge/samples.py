"""Times of calls, one list a side, and what of them is forward's own."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median, quantiles

import torch

from evaluator.judge.call import Call
from evaluator.judge.interval import median_interval

_SMALLEST_US = 0.05
_COPY_SLACK_US = 50.0
_FEWEST_TO_CHARGE = 6
"""With fewer, the interval of a median has no bounds."""
_FREE_US = 20.0
"""Two processes may take times to get ready that differ by so much for no merit of theirs."""


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

    def with_early_work(self, baseline: Samples) -> Samples:
        """The same, with what was done before each start added to its times.

        The time to get ready, less the baseline's in the same blocks: the lower bound of the median
        difference, or what a call took beyond nine of ten of the baseline's; from 20 us on.
        """
        if len(self.prepare_us) < _FEWEST_TO_CHARGE:
            return self
        pairs = zip(self.prepare_us, baseline.prepare_us, strict=True)
        usual = median_interval([mine - theirs for mine, theirs in pairs]).low
        most = quantiles(baseline.prepare_us, n=10)[-1]
        early = [max(usual, mine - most) for mine in self.prepare_us]
        early = [before if before >= _FREE_US else 0.0 for before in early]

        def charged(times: list[float]) -> list[float]:
            return [time + before for time, before in zip(times, early, strict=True)]

        return Samples(
            charged(self.total_us), charged(self.forward_us), charged(self.wall_us), self.prepare_us
        )


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
