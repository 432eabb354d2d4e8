"""Which turns a problem gets, and in which order: one schedule for every strategy.

First come independent drafts: samples 0, 1, ..., of one turn each. Then the best drafts are
refined, the best one first and each in its turn, until the budget is spent. `sample` is nothing but
drafts, `refine` is one draft that is refined, and `hybrid` is several of which the best are. The
turns of `agent` are those of `refine`: they differ in who decides when the next one comes.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from agent.config.run_config import RunConfig, Strategy

SEEDS_PER_RUN = 10_000
"""Seeds of two runs with different `--seed` never meet below this budget."""
Place = tuple[int, int]
"""Sample and turn."""


@dataclass(frozen=True)
class Schedule:
    """The calls of one problem, 0 .. budget-1. `kept` is the samples that are refined, the best
    first; it is empty while a draft is missing, and only a call after the drafts needs it."""

    drafts: int
    refined: int
    """So many drafts are kept."""
    budget: int

    @property
    def turns(self) -> int:
        return 1 + len(range(self.drafts, self.budget, self.refined))

    def place(self, call: int, kept: Sequence[int]) -> Place:
        if call < self.drafts:
            return call, 0
        turn, rank = divmod(call - self.drafts, self.refined)
        return kept[rank], turn + 1

    def call(self, place: Place, kept: Sequence[int]) -> int:
        """The inverse: running index over samples and turns."""
        sample, turn = place
        return self.drafts + (turn - 1) * self.refined + kept.index(sample) if turn else sample

    def ready(self, recorded: Container[Place], kept: Sequence[int]) -> Iterator[Place]:
        """The turns that can begin, by call: all that they build on is recorded."""
        for call in range(self.budget if kept else min(self.drafts, self.budget)):
            sample, turn = place = self.place(call, kept)
            if place not in recorded and (turn == 0 or (sample, turn - 1) in recorded):
                yield place


def schedule_of(config: RunConfig) -> Schedule:
    if config.strategy is Strategy.SAMPLE:
        return Schedule(drafts=config.budget, refined=1, budget=config.budget)
    return Schedule(config.drafts or 1, config.refine_best or 1, config.budget)


def call_seed(config: RunConfig, call: int) -> int:
    """The seed that is sent with a call: another one for every call of every run."""
    return config.seed * SEEDS_PER_RUN + call
