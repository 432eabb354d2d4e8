from __future__ import annotations

from itertools import islice

import pytest

from evaluator.evaluation import Status
from experiments.bench.speed.throughput import (
    Judged,
    ThroughputFigures,
    busy_seconds,
    doubling,
    measure_throughput,
    right_kernel,
    told,
    variants,
)


def judged(begin: float, end: float) -> Judged:
    return Judged(
        device="cpu", status=Status.CORRECT, cached=False, begin=begin, end=end, device_s=0.0
    )


def test_time_in_which_two_were_at_work_counts_once():
    assert busy_seconds([]) == 0.0
    assert busy_seconds([judged(5.0, 6.0), judged(0.0, 2.0), judged(1.0, 3.0)]) == 4.0
    assert busy_seconds([judged(0.0, 9.0), judged(1.0, 2.0), judged(8.0, 10.0)]) == 10.0


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_variants_are_python_and_differ_in_what_is_compiled(device):
    first, second = islice(variants(right_kernel(device)), 2)
    texts = []
    for each in (first, second):
        namespace = {}
        head, _, _ = each.source.partition("load_inline(")
        exec(head.rpartition("\n\n")[0], namespace)
        texts.append(namespace["source"])
    assert texts[0] != texts[1] and "// variant 1\n" in texts[1]


def test_larger_batches_take_twice_as_many_devices_until_all_are_at_work():
    assert [doubling(n) for n in (1, 2, 3, 4, 8)] == [[], [2], [2, 3], [2, 4], [2, 4, 8]]


@pytest.mark.slow
def test_a_small_measurement_on_the_cpu():
    kept: list[ThroughputFigures] = []
    figures = measure_throughput(candidates=3, sample=2, timing_seconds=0.2, keep=kept.append)
    assert kept == [figures]
    batch = figures.batch
    assert (batch.candidates, batch.correct, batch.built) == (3, 3, 3)
    assert 0.0 < batch.device_share < batch.busy_share <= 1.001
    assert figures.larger == () and figures.plain_one_by_one is None
    assert batch.scaling == 1.0
    assert "3 candidates at once" in "\n".join(told(figures))
