from __future__ import annotations

import pytest

from evaluator.evaluation import Backend, Status
from evaluator.executor.local import LocalExecutor
from evaluator.settings import Settings
from experiments.bench.speed.throughput import (
    Judged,
    busy_seconds,
    doubling,
    measure_throughput,
    told,
)
from experiments.bench.speed.variants import MOST, problem, variants
from problems.problem import SizeClass


def judged(begin: float, end: float) -> Judged:
    return Judged(
        device="cpu", status=Status.CORRECT, cached=False, begin=begin, end=end, device_s=0.0
    )


def test_time_in_which_two_were_at_work_counts_once():
    assert busy_seconds([]) == 0.0
    assert busy_seconds([judged(5.0, 6.0), judged(0.0, 2.0), judged(1.0, 3.0)]) == 4.0
    assert busy_seconds([judged(0.0, 9.0), judged(1.0, 2.0), judged(8.0, 10.0)]) == 10.0


@pytest.mark.parametrize("backend", [Backend.CPP, Backend.CUDA])
def test_variants_are_python_and_all_differ(backend):
    every = list(variants(backend))
    assert len({candidate.hash for candidate in every}) == len(every) == MOST
    compile(every[0].source, "variant", "exec")
    assert every == list(variants(backend))


@pytest.mark.slow
def test_a_variant_is_right():
    from evaluator.evaluation import EvaluationRequest

    settings = Settings(timing_seconds=0.1, audit="never")
    with LocalExecutor("cpu") as executor:
        evaluation = executor.evaluate(
            EvaluationRequest(
                problem_id=problem().id,
                reference=problem().reference(SizeClass.CPU),
                candidate=next(variants(Backend.CPP)),
                settings=settings,
            )
        )
    assert evaluation.status is Status.CORRECT, evaluation.message
    assert evaluation.build is not None and evaluation.build.headers == "light"


def test_larger_batches_take_twice_as_many_devices_until_all_are_at_work():
    assert [doubling(n) for n in (1, 2, 3, 4, 8)] == [[], [2], [2, 3], [2, 4], [2, 4, 8]]


@pytest.mark.slow
def test_a_small_measurement_on_the_cpu():
    figures = measure_throughput(candidates=3, sample=2, timing_seconds=0.2)
    batch = figures.batch
    assert (batch.candidates, batch.correct, batch.built) == (3, 3, 3)
    assert 0.0 < batch.device_share < batch.busy_share <= 1.001
    assert figures.larger == () and figures.plain_one_by_one is None
    assert batch.scaling == 1.0
    assert "3 candidates at once" in "\n".join(told(figures))
