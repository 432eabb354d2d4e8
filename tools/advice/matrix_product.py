"""Whether a task has a matrix product, and whether the hottest kernel is what does it."""

from __future__ import annotations

from collections.abc import Mapping

from tools.advice.thresholds import LIMITS


def has_product(f: Mapping[str, float]) -> bool:
    """Whether the task multiplies matrices enough for their data to be reused."""
    return f.get("matrix_intensity", 0.0) >= LIMITS.matrix_intensity


def multiplies(f: Mapping[str, float]) -> bool:
    """Whether the candidate's hottest kernel does the product.

    It does not where a library's kernels took about as long as the whole product takes: their rate
    is known then. What is hottest of the candidate's own comes before or after it.
    """
    return has_product(f) and f.get("product_rate", 0.0) <= 0.0
