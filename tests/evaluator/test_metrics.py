import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.metrics import fast_p, sol_score

times = st.floats(min_value=1e-3, max_value=1e9)


def test_fast_p_is_strict_and_counts_failures():
    speedups = [None, 0.5, 1.0, 2.0]
    assert [fast_p(speedups, p) for p in (0, 0.5, 1, 1.5, 2)] == [0.75, 0.5, 0.25, 0.25, 0.0]


def test_fast_p_of_nothing_is_refused():
    with pytest.raises(ValueError, match="no problems"):
        fast_p([], 1.0)


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
