"""What was measured of a candidate in all of its workers, one list of figures for each worker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import torch

from evaluator.judge.timing.disturbance import MOST_DISTURBED_SHARE, Disturbance
from evaluator.judge.timing.samples import Samples, copy_cost_us, net_us, paired_ratios
from evaluator.judge.timing.sampling import Sampling
from evaluator.settings import BaselineName


@dataclass(frozen=True)
class Samplings:
    """At least one sampling; the same baselines, and the same runners held, in each."""

    each: Sequence[Sampling]
    device: torch.device

    @property
    def first(self) -> Sampling:
        return self.each[0]

    def latencies_us(self) -> list[list[float]]:
        return [self._net(s, s.candidate, s.baselines[BaselineName.EAGER]) for s in self.each]

    def baseline_us(self, name: BaselineName) -> list[list[float]]:
        return [self._net(s, s.beside(name)[1], s.beside(name)[1]) for s in self.each]

    def ratios(self, name: BaselineName) -> list[list[float]]:
        return [paired_ratios(*s.beside(name), s.cost, self.device) for s in self.each]

    def pairs(self, name: BaselineName) -> int:
        return sum(len(s.beside(name)[1].total_us) for s in self.each)

    def called(self, fewest: int) -> list[tuple[Samples, Samples]]:
        """Candidate and eager as called, of workers with at least `fewest` blocks of it."""
        both = [(s.called[None], s.called[BaselineName.EAGER]) for s in self.each if s.called]
        return [pair for pair in both if len(pair[0].total_us) >= fewest]

    def hidden_us(self, name: BaselineName | None) -> float:
        """What the judge's clock saw beyond what the worker of the candidate or a baseline said;
        the median."""
        return median(sampling.hidden_us[name] for sampling in self.each)

    @property
    def blocks(self) -> int:
        return sum(s.blocks for s in self.each)

    @property
    def decisive_blocks(self) -> int:
        return sum(s.decisive_blocks for s in self.each)

    @property
    def disturbed_blocks(self) -> int:
        return sum(s.disturbed_blocks for s in self.each)

    @property
    def restless(self) -> bool:
        return self.disturbed_blocks > MOST_DISTURBED_SHARE * self.decisive_blocks

    @property
    def disturbed(self) -> Counter[Disturbance]:
        return sum((s.disturbed for s in self.each), Counter())

    def _net(self, sampling: Sampling, samples: Samples, trusted: Samples) -> list[float]:
        return net_us(samples, copy_cost_us(trusted), sampling.cost, self.device)
