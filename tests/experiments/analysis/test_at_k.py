"""Estimators over k of n answers, against all subsets."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from experiments.analysis.run_report import best_at_k, pass_at_k

VALUES = st.integers(1, 6).flatmap(
    lambda n: st.tuples(
        arrays(float, (3, n), elements=st.sampled_from([0.0, 0.5, 1.0, 1.3, 9.0])),
        st.integers(1, n),
    )
)


@given(VALUES)
def test_best_at_k_is_the_mean_over_all_subsets(case: tuple[np.ndarray, int]) -> None:
    values, k = case
    subsets = list(combinations(range(values.shape[1]), k))
    expected = np.mean([values[:, subset].max(axis=1) for subset in subsets], axis=0)
    assert best_at_k(values, k) == pytest.approx(expected)


@pytest.mark.parametrize("k", [0, 4])
def test_more_answers_than_there_are_say_nothing(k: int) -> None:
    with pytest.raises(ValueError, match="3 answers"):
        pass_at_k(np.ones((2, 3), dtype=bool), k)
