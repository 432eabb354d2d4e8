"""Studies of the size that the power note states find their difference in 80 % of cases."""

import math

import numpy as np
import pytest

from experiments.analysis.power import POWER, Spread, problems_needed, seeds_needed
from experiments.analysis.statistics import FEWEST, sign_flip_chance

TRIALS = 500
SLACK = 3 * math.sqrt(POWER * (1 - POWER) / TRIALS)
"""Three standard deviations of the binomial: 5.4 points."""


def found_in(trials: list[np.ndarray], level: float = 0.05) -> float:
    return float(np.mean([sign_flip_chance(each, draws=999) <= level for each in trials]))


@pytest.mark.parametrize(("size", "level"), [(0.5, 0.05), (0.8, 0.05), (0.5, 0.01)])
def test_means_of_that_many_problems_are_found_in_80_percent(size: float, level: float):
    generator = np.random.default_rng(1)
    needed = problems_needed(Spread(1.0, None, None), size, seeds=1, level=level)
    assert needed is not None
    trials = [generator.normal(size, 1.0, size=needed) for _ in range(TRIALS)]
    assert POWER - SLACK <= found_in(trials, level) <= POWER + SLACK + 0.03


@pytest.mark.parametrize(("gained", "lost"), [(0.3, 0.1), (0.2, 0.1), (0.2, 0.02), (0.4, 0.05)])
def test_shares_of_that_many_problems_are_found_in_at_least_80_percent(gained: float, lost: float):
    """The exact test is discrete, so it finds a little more: up to 9 points."""
    generator = np.random.default_rng(2)
    needed = problems_needed(Spread(0.1, None, gained + lost), gained - lost, seeds=1)
    assert needed is not None
    signs = generator.choice(
        [1.0, -1.0, 0.0], p=[gained, lost, 1 - gained - lost], size=(TRIALS, needed)
    )
    assert POWER - SLACK <= found_in(list(signs)) <= POWER + SLACK + 0.09


def test_seeds_count_as_far_as_the_spread_is_theirs():
    generator = np.random.default_rng(3)
    problem = generator.normal(0, 0.5, size=(4000, 1))
    differences = 0.2 + problem + generator.normal(0, 1.0, size=(4000, 3))
    spread = Spread.of(differences)
    assert spread.within == pytest.approx(1.0, rel=0.05)
    assert spread.between == pytest.approx(0.25, rel=0.15)
    sizes = [problems_needed(spread, 0.2, seeds=seeds) for seeds in (1, 3, 100)]
    assert sizes[0] is not None and sizes[1] is not None and sizes[2] is not None
    assert sizes[0] > sizes[1] > sizes[2]
    seeds = seeds_needed(spread, 0.2, problems=sizes[1])
    assert seeds == 3
    assert seeds_needed(spread, 0.2, problems=20) is None, "problems differ by too much"


def test_studies_with_seeds_of_that_size_find_it():
    generator = np.random.default_rng(4)
    needed = problems_needed(Spread(0.25, 1.0, None), 0.3, seeds=3)
    assert needed is not None
    values = 0.3 + generator.normal(0, 0.5, size=(TRIALS, needed, 1))
    trials = list((values + generator.normal(0, 1.0, size=(TRIALS, needed, 3))).mean(axis=2))
    assert POWER - SLACK <= found_in(trials) <= POWER + SLACK + 0.03


def test_what_no_study_can_settle():
    spread = Spread(1.0, None, None)
    assert problems_needed(spread, 0.0, seeds=1) is None
    assert problems_needed(spread, 0.001, seeds=1) is None
    assert seeds_needed(spread, 1.0, problems=50) is None, "one seed says nothing of seeds"
    assert problems_needed(Spread(0.0, None, None), 1.0, seeds=1) == FEWEST
