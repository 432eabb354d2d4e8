"""What k of a problem's n independent answers would have reached, on average: pass@k and best@k.

Both average over all subsets of k answers, so they use every answer and have no bias (Chen et al.
2021, arXiv 2107.03374, for pass@k). They suit samples, not turns that build on each other.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    BoolArray = NDArray[np.bool_]
    FloatArray = NDArray[np.float64]


def pass_at_k(hits: BoolArray, k: int) -> FloatArray:
    """For each problem the chance that some of k answers hits, shape (problems,).

    `hits`: shape (problems, n). Raises `ValueError` where k is not in 1..n.
    """
    return best_at_k(hits.astype(float), k)


def best_at_k(values: FloatArray, k: int) -> FloatArray:
    """For each problem the expected highest value of k answers, shape (problems,).

    `values`: shape (problems, n). Raises `ValueError` where k is not in 1..n.
    """
    answers = values.shape[1]
    if not 1 <= k <= answers:
        raise ValueError(f"k = {k}, and there are {answers} answers")
    # Of the subsets of k, so many have the i-th smallest value as their highest.
    highest = [math.comb(place, k - 1) for place in range(answers)]
    chances = np.array([count / math.comb(answers, k) for count in highest])
    return np.asarray(np.sort(values, axis=1) @ chances, dtype=float)
