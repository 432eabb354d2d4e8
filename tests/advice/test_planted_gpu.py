"""Planted kernels on a GPU: judged, profiled, and the fault named first."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.builder.toolchain import find_tool
from evaluator.collect.collected import Collected
from evaluator.evaluation import Backend, Status
from evaluator.executor.local import LocalExecutor
from tests.advice.case import SIDES, Case, Side
from tests.advice.measured import Measured
from tests.advice.planted import CASES
from tests.advice.test_planted import assert_fault_is_named
from tests.evaluator.made_requests import evaluation_request
from tools.profile import profile

pytestmark = pytest.mark.gpu
DEVICE = "cuda:0"


def measured(case: Case, side: Side, executor: LocalExecutor, folder: Path) -> Measured:
    request = evaluation_request(
        case.source(side), case.reference, backend=Backend.CUDA, device=DEVICE, timing_seconds=0.3
    )
    evaluation = executor.evaluate(request)
    assert evaluation.status is Status.CORRECT and evaluation.timing is not None, evaluation.message
    found = profile(request, evaluation, keep=folder)
    return Measured(
        case=case.name,
        side=side,
        own=tuple(kernel.name for kernel in found.kernels if kernel.own),
        latency_us=evaluation.timing.latency_us,
        bound_us=evaluation.timing.bound_us,
        attainable_us=evaluation.timing.attainable_us,
        collected=Collected.model_validate_json((folder / "collected.json").read_text()),
    )


@pytest.mark.skipif(find_tool("ncu") is None, reason="Nsight Compute is not installed")
def test_faults_are_named_and_gone_once_fixed(tmp_path: Path) -> None:
    with LocalExecutor(DEVICE) as executor:
        for case in CASES:
            folder = tmp_path / case.name
            planted, fixed = (measured(case, side, executor, folder / side) for side in SIDES)
            assert_fault_is_named(planted, fixed)
