"""No honest kernel is refused, however risky it looks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evaluator.evaluation import Status
from evaluator.executor.local import LocalExecutor
from tests.honest.corpus import HonestKernel, corpus
from tests.honest.run import SETTINGS

CPU, GPU = corpus("cpu"), corpus("gpu")


@pytest.fixture(scope="module")
def cpu() -> Iterator[LocalExecutor]:
    with LocalExecutor("cpu") as running:
        yield running


@pytest.fixture(scope="module")
def gpu() -> Iterator[LocalExecutor]:
    with LocalExecutor("cuda:0") as running:
        yield running


def each(kernels: list[HonestKernel]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("kernel", kernels, ids=lambda kernel: kernel.name)


def assert_correct(kernel: HonestKernel, executor: LocalExecutor) -> None:
    evaluation = executor.evaluate(kernel.request(SETTINGS[kernel.place]))
    told = f"{evaluation.reason}: {evaluation.message}\n{evaluation.detail}"
    assert evaluation.status is Status.CORRECT, told
    assert evaluation.timing is not None


FAST = [kernel for kernel in CPU if kernel.fast]


@pytest.mark.thorough
@each(FAST[::3])
def test_an_honest_kernel_is_correct(kernel, cpu):
    assert_correct(kernel, cpu)


@pytest.mark.slow
@each([k for k in CPU if k not in FAST[::3]])
def test_another_honest_kernel_is_correct(kernel, cpu):
    assert_correct(kernel, cpu)


@pytest.mark.gpu
@each(GPU)
def test_an_honest_gpu_kernel_is_correct(kernel, gpu):
    assert_correct(kernel, gpu)


def test_the_corpus_is_as_large_as_it_should_be():
    assert len(CPU) >= 45
    assert len(GPU) >= 20
