"""A few of the planted kernels on a GPU: judged, profiled, and the fault named first."""

from __future__ import annotations

import pytest

from evaluator.collect.ncu import find_ncu
from tests.advice.planted import CASES
from tests.advice.run import run
from tests.advice.test_planted import assert_fault_is_named

pytestmark = pytest.mark.gpu

CLEAR = ("row_sums", "banks_transpose", "few_blocks", "double_gelu")
"""With the largest distance between the fault and whatever else could be said."""


@pytest.mark.skipif(find_ncu() is None, reason="Nsight Compute is not installed")
def test_faults_are_named_and_gone_once_fixed() -> None:
    for case in CASES:
        if case.name in CLEAR:
            planted, fixed = run([case])
            assert_fault_is_named(case, planted, fixed)
