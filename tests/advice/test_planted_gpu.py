"""A few of the planted kernels on a GPU: judged, profiled, and the fault named first."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from evaluator.collect.ncu import find_ncu
from tests.advice.case import SIDES
from tests.advice.outcome import outcomes
from tests.advice.planted import CASES
from tests.advice.run import DEVICE, TIMING_SECONDS, run

pytestmark = pytest.mark.gpu

CLEAR = ("row_sums", "banks_transpose", "few_blocks", "double_gelu")
"""With the largest distance between the fault and whatever else could be said."""


@pytest.mark.skipif(find_ncu() is None, reason="Nsight Compute is not installed")
def test_faults_are_named_and_gone_in_the_twins(tmp_path: Path) -> None:
    jobs = [
        case.job(side, DEVICE, TIMING_SECONDS)
        for case in CASES
        if case.name in CLEAR
        for side in SIDES
    ]
    run(jobs, tmp_path, time.monotonic() + 400)
    for outcome in outcomes(tmp_path):
        if outcome.case.name in CLEAR:
            assert outcome.problem == "", outcome.case.name
            assert outcome.shown, (outcome.case.name, outcome.planted.advice)
