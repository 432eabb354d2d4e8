from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.metrics import fast_p, geometric_mean, pass_at_k, sol_score

times = st.floats(min_value=1e-3, max_value=1e9)


def test_fast_p_is_strict_and_counts_failures():
    speedups = [None, 0.5, 1.0, 2.0]
    assert [fast_p(speedups, p) for p in (0, 0.5, 1, 1.5, 2)] == [0.75, 0.5, 0.25, 0.25, 0.0]


def test_fast_p_of_nothing_is_refused():
    with pytest.raises(ValueError, match="no problems"):
        fast_p([], 1.0)


def test_geometric_mean():
    assert geometric_mean([1.0, 4.0]) == pytest.approx(2.0)
    assert geometric_mean([0.5, 2.0]) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="not positive"):
        geometric_mean([1.0, 0.0])
    with pytest.raises(ValueError, match="nothing"):
        geometric_mean([])


@given(st.integers(1, 7), st.data())
def test_pass_at_k_is_the_share_of_subsets_with_a_correct_one(samples, data):
    correct = data.draw(st.integers(0, samples))
    k = data.draw(st.integers(1, samples))
    subsets = list(combinations(range(samples), k))
    share = sum(min(subset) < correct for subset in subsets) / len(subsets)
    assert pass_at_k(samples, correct, k) == pytest.approx(share)


@pytest.mark.parametrize("arguments", [(0, 0, 1), (4, 5, 1), (4, 1, 0), (4, 1, 5)])
def test_pass_at_k_refuses_nonsense(arguments):
    with pytest.raises(ValueError, match="not defined"):
        pass_at_k(*arguments)


@given(times, times, times)
def test_sol_score_stays_between_nothing_and_light(latency, baseline, bound):
    assert 0.0 <= sol_score(latency, baseline, bound) <= 1.0


def test_sol_score_has_its_fixed_points():
    assert sol_score(10.0, 10.0, 2.0) == pytest.approx(0.5)
    assert sol_score(2.0, 10.0, 2.0) == 1.0
    assert sol_score(1.0, 10.0, 2.0) == 1.0
    assert sol_score(6.0, 5.0, 5.0) == 0.0
    assert sol_score(5.0, 5.0, 5.0) == 1.0
    with pytest.raises(ValueError, match="positive"):
        sol_score(0.0, 1.0, 1.0)
