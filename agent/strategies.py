"""`refine` and `sample`: which turns there are, and what the next prompt remembers of earlier ones.

Both take the same turns through the same nodes and are charged alike. `sample` is `budget`
independent drafts: samples 0, 1, ..., each of one turn, and nothing is remembered. `refine` is one
sample of `budget` turns, each of which is shown what the letters allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.best import best_of
from agent.config import RunConfig, Strategy
from agent.record import TurnRecord
from agent.standing import Standing

SEEDS_PER_RUN = 10_000
"""Seeds of two runs with different `--seed` never meet below this budget."""


@dataclass(frozen=True)
class Memory:
    """What the next prompt may be built from; the letters decide what of it is shown."""

    base: TurnRecord | None = None
    """The turn whose kernel is refined; None where no turn has held one yet."""
    base_is_best: bool = False
    last: TurnRecord | None = None
    earlier: tuple[TurnRecord, ...] = ()
    """All turns so far with `--history all`, else none."""


def letters_of(config: RunConfig) -> frozenset[str]:
    """The items of `--feedback` (letters and controls, as `agent.letters` writes them) that are on;
    for `sample` none is."""
    if config.strategy is Strategy.SAMPLE or config.feedback == "none":
        return frozenset()
    return frozenset(config.feedback.split("+"))


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


def remember(config: RunConfig, turns: Sequence[TurnRecord]) -> Memory:
    """What the next prompt may be built from, given the turns of this sample so far."""
    letters = letters_of(config)
    if not letters or not turns:
        return Memory()
    with_code = [turn for turn in turns if turn.candidate is not None]
    base, is_best = (with_code[-1] if with_code else None), False
    # Which kernel is the best is something that execution said: without E nobody may know.
    if config.start_from == "best" and "E" in letters and (best := best_of(turns)) is not None:
        base, is_best = best, True
    earlier = tuple(turns) if config.history == "all" else ()
    return Memory(base=base, base_is_best=is_best, last=turns[-1], earlier=earlier)


def is_stale(config: RunConfig, standing: Standing) -> bool:
    """`--stop-early N`: the last N turns brought no better kernel than those before."""
    if config.stop_early is None:
        return False
    return standing.turns_since_best >= config.stop_early


def is_near_sol(config: RunConfig, standing: Standing) -> bool:
    """`--stop-near-sol SHARE`: the best kernel reaches that share of the speed of light."""
    if config.stop_near_sol is None or standing.best is None:
        return False
    timing = standing.best.evaluation.timing
    reached = timing.sol_fraction if timing else None
    return reached is not None and reached >= config.stop_near_sol
