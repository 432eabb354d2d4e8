"""Device times: calls that are enqueued while the stream is held, and those that cannot be."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from evaluator.evaluation import Backend, Evaluation, Status, Verdict
from evaluator.executor.local import LocalExecutor
from tests.evaluator.made_requests import evaluation_request
from tests.task import task

pytestmark = pytest.mark.gpu

Judge = Callable[..., Evaluation]

SMALL = task(
    """
    for _ in range(40):
        x = torch.sin(x)
    return x
    """,
    x="torch.randn(64, 64)",
)
LARGE = task("return torch.softmax(x, dim=1)", x="torch.randn(8192, 8192)")
WAITS = SMALL.replace("return x\n", "return x * (1.0 if x.sum().item() > 1e9 else 2.0)\n", 1)
LIKE_AN_LSTM = SMALL.replace("range(40)", "range(2000)")
MANY_LAUNCHES = SMALL.replace("range(40)", "range(6000)")


def changed(reference: str, body: str, head: str = "") -> str:
    """A candidate with this forward instead of the reference's."""
    start = reference.split("    def forward")[0].replace("Model(", "ModelNew(")
    indented = body.replace("\n", "\n        ")
    return f"{head}\n{start}    def forward(self, x):\n        {indented}\n"


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with LocalExecutor("cuda:0") as executor:

        def evaluate(source: str, reference: str, **settings: object) -> Evaluation:
            chosen = {"device": "cuda:0", "timing_seconds": 0.5, "audit": "never"}
            request = evaluation_request(
                source, reference, backend=Backend.CUDA, **(chosen | settings)
            )
            found = executor.evaluate(request)
            print(found.message, found.notes, found.timing and found.timing.model_dump())
            return found

        yield evaluate


@pytest.mark.parametrize("reference", [SMALL, LARGE])
def test_identical_code_takes_the_same_time_on_the_device(judge, reference):
    evaluation = judge(reference.replace("Model(", "ModelNew("), reference)
    assert evaluation.status is Status.CORRECT, evaluation.message
    timing = evaluation.timing
    # What lies between two small kernels differs from process to process.
    assert timing.speedup == pytest.approx(1.0, abs=0.1 if reference is SMALL else 0.03)
    assert reference is SMALL or timing.verdict in (Verdict.SAME, Verdict.UNCLEAR)
    assert timing.called.latency_us > 0.9 * timing.latency_us
    assert timing.launch_bound is (reference is SMALL)
    assert any("the host limits" in note for note in evaluation.notes) is (reference is SMALL)


def test_fewer_launches_show_in_both_times(judge):
    graph = (
        "if not hasattr(self, 'graph'):\n"
        "    self.given = x.clone()\n"
        "    self.graph = torch.cuda.CUDAGraph()\n"
        "    with torch.cuda.graph(self.graph):\n"
        "        y = self.given\n"
        "        for _ in range(40):\n"
        "            y = torch.sin(y)\n"
        "    self.result = y\n"
        "self.given.copy_(x)\n"
        "self.graph.replay()\n"
        "return self.result"
    )
    evaluation = judge(changed(SMALL, graph), SMALL)
    assert evaluation.status is Status.CORRECT, evaluation.message
    assert evaluation.timing.called.speedup > 1.2 * evaluation.timing.speedup


def test_a_kernel_that_waits_for_the_device_stands_against_eagers_device_time(judge):
    evaluation = judge(
        changed(LARGE, "y = torch.softmax(x, dim=1)\ntorch.cuda.synchronize()\nreturn y"), LARGE
    )
    assert evaluation.status is Status.CORRECT, evaluation.message
    assert any(note.startswith("the kernel waits") for note in evaluation.notes)
    assert evaluation.timing.speedup < 1.01


@pytest.mark.parametrize("reference", [WAITS, MANY_LAUNCHES])
def test_a_reference_that_cannot_be_held_is_timed_as_called(judge, reference):
    evaluation = judge(reference.replace("Model(", "ModelNew("), reference)
    assert evaluation.status is Status.CORRECT, evaluation.message
    assert any(note.startswith("eager waits") for note in evaluation.notes)
    assert evaluation.timing.called is None


def test_two_thousand_launches_are_held(judge):
    evaluation = judge(LIKE_AN_LSTM.replace("Model(", "ModelNew("), LIKE_AN_LSTM)
    assert evaluation.status is Status.CORRECT, evaluation.message
    assert not any("waits" in note for note in evaluation.notes)
    assert evaluation.timing.called is not None


def test_work_on_the_host_during_the_hold_gains_nothing(judge):
    body = (
        "y = torch.softmax(x, dim=1)\n"
        "end = time.perf_counter() + 0.02\n"
        "while time.perf_counter() < end:\n"
        "    pass\n"
        "return y"
    )
    evaluation = judge(changed(LARGE, body, "import time"), LARGE)
    assert evaluation.status is Status.CORRECT, evaluation.message
    assert 0.97 < evaluation.timing.speedup < 1.03
    assert evaluation.timing.called.latency_us > 15_000


def test_kernelbenchs_protocol_reports_the_time_as_called(judge):
    source = SMALL.replace("Model(", "ModelNew(")
    evaluation = judge(source, SMALL, protocol="kernelbench")
    assert evaluation.status is Status.CORRECT, evaluation.message
    assert evaluation.timing.called is None
    assert evaluation.timing.latency_us > judge(source, SMALL).timing.latency_us
