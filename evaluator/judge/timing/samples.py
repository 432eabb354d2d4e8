"""Times of calls, one list for each runner, and what of them is forward's own."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import compress
from statistics import median

import torch

from evaluator.judge.timing.call_cost import CallCost
from evaluator.judge.timing.interval import FEWEST_VALUES, median_interval
from evaluator.judge.workers.call import Call

_SMALLEST_US = 0.05
_COPY_SLACK_US = 50.0
_FREE_US = 20.0
"""Two processes may take times to get ready that differ by so much for no merit of theirs."""
_FREE_HIDDEN_US = 3.0
"""Likewise for the way from the judge's process to another one's on a GPU and back: on an H100 300
us, and 69 of 78 calls were within 2 us of it (`experiments/results/README.md`)."""


@dataclass
class Samples:
    """Times of one runner, one entry for each block that counts, in microseconds."""

    total_us: list[float] = field(default_factory=list)
    forward_us: list[float] = field(default_factory=list)
    wall_us: list[float] = field(default_factory=list)
    prepare_us: list[float] = field(default_factory=list)
    proves: list[bool] = field(default_factory=list)
    """Whether the outputs were verified, on inputs that differ from the last ones in more than an
    element: such a call did all of the work, whatever is claimed of its time."""

    def add(self, call: Call, *, proves: bool = False) -> None:
        self.proves.append(proves)
        self.total_us.append(call.total_us)
        self.forward_us.append(call.forward_us)
        self.wall_us.append(call.wall_us)
        self.prepare_us.append(call.prepare_us)

    @property
    def hidden_us(self) -> list[float]:
        """What the judge's clock saw beyond what the worker says."""
        return [wall - total for wall, total in zip(self.wall_us, self.total_us, strict=True)]

    def left_out_us(self, baseline: Samples, usually_hidden_us: float | None) -> float:
        """What the worker's own times leave out of a call.

        That is time to get ready beyond the baseline's in the same blocks, from 20 us on; and on a
        GPU what is hidden beyond what is usual, from 3 us on: for a call that is not held, the way
        through the host as well, on which the device may work.
        """
        if len(self.prepare_us) < FEWEST_VALUES:
            return 0.0
        pairs = zip(self.prepare_us, baseline.prepare_us, strict=True)
        later = [mine - theirs for mine, theirs in pairs]
        early = self._left_out(self.prepare_us, median(baseline.prepare_us), later)
        charged = early if early >= _FREE_US else 0.0
        if usually_hidden_us is not None:
            beyond = [mine - usually_hidden_us for mine in self.hidden_us]
            hidden = self._left_out(self.hidden_us, usually_hidden_us, beyond)
            charged += hidden if hidden >= _FREE_HIDDEN_US else 0.0
        return charged

    def _left_out(self, beside_us: list[float], usual_us: float, beyond_us: list[float]) -> float:
        """The largest of three lower bounds.

        One is of what a call takes `beyond_us`. Another is of how much longer the median call is
        with what is `beside_us` than without it: a worker may leave its work out of some of its
        calls' times. The third is the shortest call that did all of the work, beside the median
        claim: a worker may do nothing in a few. None follows the calls that a busy host delays, as
        long as some are not.
        """
        whole = [own + more for own, more in zip(self.total_us, beside_us, strict=True)]
        longer = max(median_interval(whole).low, min(compress(whole, self.proves), default=0.0))
        return max(median_interval(beyond_us).low, longer - median(self.total_us) - usual_us)

    def with_left_out(self, left_out_us: float) -> Samples:
        """The same, with so much more in each of the worker's own times."""
        return replace(
            self,
            total_us=[time + left_out_us for time in self.total_us],
            forward_us=[time + left_out_us for time in self.forward_us],
        )


def net_us(samples: Samples, copy_us: float, cost: CallCost, device: torch.device) -> list[float]:
    """Times of forward alone, what all runners pay alike taken off.

    On a GPU the copy into the slot belongs to the timed span, so that nothing can be finished
    later: what it takes beyond what it takes a trusted baseline counts as forward's own. (Forward's
    own events are the lower limit: a call of some microseconds is over before its copy is launched,
    and total less copy would be nothing at all.) On a CPU the outputs are read where they lie and
    only the signal's cost is subtracted; where the system forbids that, time for a copy beyond
    twice the baseline's counts as forward's own. No call counts as shorter than one operator's.
    """
    times = []
    for forward, total in zip(samples.forward_us, samples.total_us, strict=True):
        if device.type == "cuda":
            times.append(max(forward, total - copy_us, _SMALLEST_US))
            continue
        late = max(0.0, total - forward - 2 * copy_us - _COPY_SLACK_US) if copy_us else 0.0
        times.append(max(forward + late - cost.signal_us, cost.operator_us, _SMALLEST_US))
    return times


def copy_cost_us(baseline: Samples) -> float:
    """What copying the outputs into the slot costs, by a trusted runner's own times."""
    pairs = zip(baseline.total_us, baseline.forward_us, strict=True)
    return median([total - forward for total, forward in pairs])


def paired_ratios(
    candidate: Samples, baseline: Samples, cost: CallCost, device: torch.device
) -> list[float]:
    copy = copy_cost_us(baseline)
    mine = net_us(candidate, copy, cost, device)
    theirs = net_us(baseline, copy, cost, device)
    return [b / c for b, c in zip(theirs, mine, strict=True)]
