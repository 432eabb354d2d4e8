"""The reference in fp64: whole, in slices, or not at all."""

from __future__ import annotations

import pytest
import torch

from evaluator.hardware.host_memory import growth_limited
from evaluator.judge.problem.exact_reference import ExactReference
from evaluator.judge.problem.reference import Reference
from evaluator.settings import Precision
from tests.task import task

TASK = task(
    "return BODY",
    init="""
    self.linear = torch.nn.Linear(32, 16)
    self.batch_norm = torch.nn.BatchNorm1d(32)
    self.plain = torch.randn(32)
    """,
    x="torch.randn(100, 32)",
)


def made(body: str) -> tuple[Reference, ExactReference]:
    reference = Reference(TASK.replace("BODY", body), torch.device("cpu"), Precision.FP32)
    return reference, ExactReference(reference)


@pytest.mark.parametrize(
    "body",
    [
        "self.linear(x)",
        "torch.softmax(x, 1)",
        "torch.cumsum(x, 1)",
        "(self.linear(x), x.amax(1), x.argmax(1))",
    ],
)
def test_slices_give_what_the_whole_gives(body: str) -> None:
    reference, exact = made(body)
    whole, source = exact.outputs(lambda: reference.fresh_inputs(1))
    assert source == "fp64"
    exact = ExactReference(reference, slices_first=True)
    slices, source = exact.outputs(lambda: reference.fresh_inputs(1))
    assert source == "fp64_sliced"
    for one, other in zip(whole, slices, strict=True):
        assert one.dtype == other.dtype
        assert torch.allclose(one, other, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    "body",
    [
        "self.batch_norm(x)",  # statistics over the batch
        "x / x.norm()",
        "torch.cumsum(x, 0)",
        "x.mean()",
        "x.T.contiguous()",
        "x.view(10, 10, 32).sum(1)",  # insists on its batch
        "x.roll(1, 0)",
    ],
)
def test_no_slices_where_they_are_not_the_whole(body: str) -> None:
    reference, _ = made(body)
    exact = ExactReference(reference, slices_first=True)
    assert exact.outputs(lambda: reference.fresh_inputs(1))[1] == "fp64"


@pytest.mark.parametrize(
    "body",
    [
        "x + self.plain",  # neither parameter nor buffer
        "x @ torch.ones(32, 8)",
        "x @ torch.ones(32, 8, dtype=torch.float32)",
        "x.to(torch.float32) * x.float()",
    ],
)
def test_fp64_holds_where_a_module_speaks_of_fp32(body: str) -> None:
    reference, exact = made(body)
    outputs, source = exact.outputs(lambda: reference.fresh_inputs(1))
    assert source == "fp64"
    assert outputs[0].dtype is torch.float64
    expected = reference.expected(reference.fresh_inputs(1))[0]
    assert 0 < float((outputs[0] - expected).abs().max()) < 1e-4
    assert torch.get_default_dtype() is torch.float32


def test_a_module_that_knows_only_fp32_has_no_fp64_reference() -> None:
    reference, exact = made(
        "torch.frombuffer(x.numpy().tobytes(), dtype=torch.float32) + x.view(-1)"
    )
    assert exact.outputs(lambda: reference.fresh_inputs(1)) == (None, "task_precision")


def test_a_new_state_reaches_the_fp64_module() -> None:
    reference, exact = made("self.linear(x)")
    before, _ = exact.outputs(lambda: reference.fresh_inputs(1))
    reference.randomise(3)
    after, _ = exact.outputs(lambda: reference.fresh_inputs(1))
    assert not torch.allclose(before[0], after[0])
    assert torch.allclose(
        after[0].float(), reference.expected(reference.fresh_inputs(1))[0], atol=1e-5
    )


def test_a_batch_too_large_for_memory_is_widened_in_slices() -> None:
    """1 GiB in fp64, of which the slices hold a sixteenth at a time; their outputs are small."""
    reference = Reference(
        TASK.replace("BODY", "x.sum(1)").replace("100, 32", "2**22, 32"),
        torch.device("cpu"),
        Precision.FP32,
    )
    exact = ExactReference(reference)
    with growth_limited(5 * 2**28):
        outputs, source = exact.outputs(lambda: reference.fresh_inputs(1))
    assert source == "fp64_sliced"
    assert outputs[0].dtype is torch.float64
