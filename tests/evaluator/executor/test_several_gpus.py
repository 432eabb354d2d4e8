"""Two real GPUs: each judge has its own, and calls it `cuda:0`. Needs a machine with two."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from evaluator.evaluation import Backend, EvaluationRequest, Status
from evaluator.executor.local import LocalExecutor
from evaluator.hardware.devices import list_gpus
from tests.evaluator.judge.test_judge_gpu import CUDA, LARGE
from tests.evaluator.made_requests import HONEST, evaluation_request
from tools.profile import profile

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(len(list_gpus()) < 2, reason="needs two GPUs"),
]

NAMES_ITS_DEVICE = HONEST.replace(
    "def forward(self, x):",
    "def forward(self, x):\n        assert str(x.device) == 'cuda:0' == str(self.bias.device)"
    "\n        assert torch.cuda.device_count() == 1",
)


@pytest.fixture(scope="module")
def both() -> Iterator[LocalExecutor]:
    with LocalExecutor("cuda:0", "cuda:1") as executor:
        yield executor


def request(source: str) -> EvaluationRequest:
    return evaluation_request(
        source, LARGE, backend=Backend.CUDA, device="cuda:0", timing_seconds=1.0, audit="never"
    )


@pytest.mark.parametrize("source", [NAMES_ITS_DEVICE, CUDA], ids=["names its device", "CUDA"])
def test_a_kernel_is_judged_alike_on_both(both: LocalExecutor, source: str) -> None:
    with ThreadPoolExecutor(2) as pool:
        # Where one is still built, or its builder starting, the first device may judge both.
        list(pool.map(both.evaluate, [request(source)] * 2))
        verdicts = list(pool.map(both.evaluate, [request(source)] * 2))
    assert [verdict.status for verdict in verdicts] == [Status.CORRECT] * 2, verdicts
    assert {verdict.conditions["judged_on"] for verdict in verdicts} == {"cuda:0", "cuda:1"}


def test_a_kernel_is_profiled_on_the_second(both: LocalExecutor) -> None:
    verdict = both.evaluate(request(CUDA))
    found = profile(request(CUDA).on("cuda:1"), verdict)
    assert found.kernels, found.rung_reason
