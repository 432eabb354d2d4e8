import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.analysis.statistics import (
    FEWEST,
    Resamples,
    difference,
    holm,
    problems_to_tell,
    sign_flip_chance,
    student_t,
    tellable,
    wilson,
)

FIGURES = st.lists(st.floats(-5, 5), min_size=2, max_size=30)


@given(values=FIGURES, seed=st.integers(0, 5))
def test_an_interval_holds_its_figure_and_lies_within_the_values(values: list[float], seed: int):
    found = Resamples.of(len(values), seed=seed, draws=400).mean(np.array(values))
    assert found.value == pytest.approx(np.mean(values), abs=1e-12)
    slack = 1e-9
    assert min(values) - slack <= found.low <= found.value <= found.high <= max(values) + slack


def test_columns_are_resampled_together():
    values = np.arange(8.0)
    resamples = Resamples.of(8)
    both = resamples.means(np.stack([values, 2 * values + 1], axis=1))
    assert both[0] == resamples.mean(values)
    assert both[1].low == pytest.approx(2 * both[0].low + 1)


def test_one_problem_has_no_spread_to_speak_of():
    found = Resamples.of(1).mean(np.array([2.0]))
    assert (found.value, found.low, found.high) == (2.0, -math.inf, math.inf)
    with pytest.raises(ValueError, match="at least one"):
        Resamples.of(0)


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [(1, 12.7062), (2, 4.30265), (3, 3.18245), (5, 2.57058), (11, 2.20099), (100, 1.98397)],
)
def test_students_quantile_is_that_of_the_tables(freedom: int, quantile: float):
    assert student_t(0.975, freedom) == pytest.approx(quantile, rel=0.006)


def coverage(problems: int, trials: int, draw) -> float:
    """How often the interval of samples of `draw` holds the true mean, 0."""
    generator = np.random.default_rng(0)
    resamples = Resamples.of(problems, seed=1, draws=1000)
    found = resamples.means(draw(generator, (problems, trials)))
    return float(np.mean([estimate.low <= 0 <= estimate.high for estimate in found]))


@pytest.mark.parametrize("problems", [6, 12, 40])
def test_a_95_percent_interval_of_normal_figures_covers_about_95_percent(problems: int):
    covered = coverage(problems, 600, lambda generator, shape: generator.normal(size=shape))
    assert 0.925 <= covered <= 0.975


def test_wilsons_interval_is_that_of_the_tables():
    found = wilson(8, 10)
    assert (found.value, found.low, found.high) == pytest.approx((0.8, 0.4902, 0.9433), abs=1e-4)
    assert wilson(12, 12).low == pytest.approx(0.7575, abs=1e-4)
    assert wilson(12, 12).high == 1.0
    assert wilson(0, 12).low == 0.0


def test_a_share_of_all_or_none_is_not_called_certain():
    resamples = Resamples.of(12)
    everything, nothing = resamples.shares(np.array([[True, False]] * 12))
    assert everything == wilson(12, 12)
    assert nothing == wilson(0, 12)


@given(hits=st.lists(st.booleans(), min_size=2, max_size=40))
def test_a_share_and_its_interval_are_shares(hits: list[bool]):
    found = Resamples.of(len(hits), draws=200).share(np.array(hits))
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.low < found.high


@given(values=st.lists(st.sampled_from([-2.0, -1.0, 0.0, 1.0, 3.0]), min_size=1, max_size=8))
def test_the_sign_flip_chance_is_the_share_of_sign_patterns(values: list[float]):
    unequal = [value for value in values if value]
    sums = [
        abs(sum(sign * value for sign, value in zip(signs, unequal, strict=True)))
        for signs in product((-1, 1), repeat=len(unequal))
    ]
    expected = sum(total >= abs(sum(unequal)) for total in sums) / len(sums)
    assert sign_flip_chance(np.array(values)) == pytest.approx(expected)


def test_the_sampled_chance_agrees_with_the_exact_one():
    generator = np.random.default_rng(0)
    values = generator.normal(0.4, 1, size=13)
    exact = sign_flip_chance(values)
    # A difference too small to count makes it 14, and so the patterns are sampled.
    sampled = sign_flip_chance(np.append(values, 1e-12), draws=40_000)
    assert sampled == pytest.approx(exact, abs=0.01)


def clear(a: list[float], b: list[float]) -> int:
    return difference(np.array(a), np.array(b), Resamples.of(len(a))).sign


def test_a_difference_on_every_problem_is_clear_from_six_problems_on():
    assert FEWEST == 6
    steps = [0.5, 0.6, 0.7, 0.5, 0.6, 0.7]
    assert clear([0.0] * 6, steps) == 1
    assert clear(steps, [0.0] * 6) == -1
    assert clear([0.0] * 5, steps[:5]) == 0


def test_four_to_none_of_twelve_is_not_clear_though_the_bootstrap_would_say_so():
    a, b = np.zeros(12), np.array([1.0] * 4 + [0.0] * 8)
    found = difference(a, b, Resamples.of(12))
    assert found.estimate.low > 0
    assert found.chance == pytest.approx(1 / 8)
    assert found.sign == 0


@given(values=FIGURES, seed=st.integers(0, 3))
def test_swapping_the_runs_swaps_the_verdict(values: list[float], seed: int):
    other = list(np.random.default_rng(seed).permutation(values))
    assert clear(values, other) == -clear(other, values)


def test_holm_is_what_the_definition_says() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_equal_differences_of_shares_are_not_certain() -> None:
    none, all_ = np.zeros(12), np.ones(12)
    gained = difference(none, all_, Resamples.of(12), shares=True)
    assert gained.estimate.value == gained.estimate.high == 1.0
    assert gained.estimate.low == pytest.approx(wilson(12, 12).low)
    lost = difference(all_, none, Resamples.of(12), shares=True)
    assert (lost.estimate.low, lost.estimate.high) == (-1.0, -gained.estimate.low)
    same = difference(all_, all_, Resamples.of(12), shares=True)
    assert same.estimate.high == -same.estimate.low == wilson(0, 12).high
    assert (gained.sign, lost.sign, same.sign) == (1, -1, 0)


@pytest.mark.parametrize("seeds", [1, 3])
def test_the_paired_test_keeps_its_level(seeds: int) -> None:
    """At most 5 % and three standard deviations (2.1 points at 1000 trials)."""
    generator = np.random.default_rng(7)
    a, b = generator.random(size=(2, 1000, 15, seeds)) < 0.4
    chances = [sign_flip_chance(each, draws=499) for each in (b.mean(axis=2) - a.mean(axis=2))]
    assert np.mean(np.array(chances) <= 0.05) <= 0.05 + 0.021


def test_mcnemars_test_is_exact_for_any_number_and_is_named() -> None:
    b = np.array([1.0] * 30 + [0.0] * 40)
    a = np.array([0.0] * 30 + [1.0] * 14 + [0.0] * 26)
    found = difference(a, b, Resamples.of(70), shares=True)
    expected = 2 * sum(math.comb(44, count) for count in range(15)) / 2**44
    assert found.chance == pytest.approx(expected)
    assert (found.test, found.differing, found.higher) == ("McNemar's exact test", 44, 30)
    seeds = difference(a / 2, b, Resamples.of(70), shares=True)
    assert seeds.test == "sign-flip test"


def test_the_effect_is_the_mean_in_standard_deviations() -> None:
    found = difference(np.zeros(4), np.array([1.0, 2.0, 3.0, 4.0]), Resamples.of(4))
    assert found.effect == pytest.approx(2.5 / np.std([1, 2, 3, 4], ddof=1))
    assert difference(np.zeros(4), np.ones(4), Resamples.of(4)).effect is None


@pytest.mark.parametrize("questions", [1, 2])
def test_what_can_be_told_is_told_in_four_of_five_studies(questions: int) -> None:
    """Within three standard deviations (6 points at 400 trials), and two that the formula may be
    off."""
    gain = tellable(0.3, 25, questions)
    trials = np.random.default_rng(3).normal(gain, 0.3, size=(400, 25))
    chances = np.array([sign_flip_chance(each, draws=999) for each in trials])
    assert np.mean(chances <= 0.05 / questions) == pytest.approx(0.8, abs=0.08)
    assert problems_to_tell(gain * 1.0001, 0.3, questions) == 25
    assert problems_to_tell(1e9, 0.3, questions) == 6, "fewer are never clear"
