"""Which turns a run takes, by its strategy.

`sample` is `budget` independent drafts: samples 0, 1, ..., each of one turn. `refine` is one sample
of `budget` turns. Both take the same turns through the same nodes and are charged alike.
"""

from __future__ import annotations

from agent.config.run_config import RunConfig, Strategy

SEEDS_PER_RUN = 10_000
"""Seeds of two runs with different `--seed` never meet below this budget."""


def samples_of(config: RunConfig) -> range:
    """The samples that a problem gets within its budget."""
    return range(config.budget if config.strategy is Strategy.SAMPLE else 1)


def turns_of(config: RunConfig) -> int:
    """The most turns that one sample has."""
    return 1 if config.strategy is Strategy.SAMPLE else config.budget


def call_index(sample: int, turn: int) -> int:
    """Running index over samples and turns of a problem: one of both is always 0."""
    return sample + turn


def call_seed(config: RunConfig, sample: int, turn: int) -> int:
    """The seed that is sent with a call: another one for every call of every run."""
    return config.seed * SEEDS_PER_RUN + call_index(sample, turn)
