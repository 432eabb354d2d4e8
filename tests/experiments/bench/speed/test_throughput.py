from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from evaluator.evaluation import Status
from experiments.bench.speed.throughput import (
    Judged,
    busy_seconds,
    doubling,
    kernels_for,
    right_kernel,
    variants,
)
from problems.errors import UsageError

SUITE = Path(__file__).parents[3] / "data" / "suite"


def judged(begin: float, end: float) -> Judged:
    return Judged(
        device="cpu",
        status=Status.CORRECT,
        verdict=None,
        built=False,
        begin=begin,
        end=end,
        device_s=0.0,
    )


def test_time_in_which_two_were_at_work_counts_once():
    assert busy_seconds([]) == 0.0
    assert busy_seconds([judged(5.0, 6.0), judged(0.0, 2.0), judged(1.0, 3.0)]) == 4.0
    assert busy_seconds([judged(0.0, 9.0), judged(1.0, 2.0), judged(8.0, 10.0)]) == 10.0


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_variants_are_python_and_differ_in_what_is_compiled(device):
    first, second = islice(variants([right_kernel(device)]), 2)
    texts = []
    for each in (first, second):
        namespace = {}
        head, _, _ = each.source.partition("load_inline(")
        exec(head.rpartition("\n\n")[0], namespace)
        texts.append(namespace["source"])
    assert texts[0] != texts[1] and "// variant 1\n" in texts[1]


def test_larger_batches_take_twice_as_many_devices_until_all_are_at_work():
    assert [doubling(n) for n in (1, 2, 3, 4, 8)] == [[], [2], [2, 3], [2, 4], [2, 4, 8]]


def test_own_modules_of_a_suite_need_no_build_and_are_distinct():
    kernels = kernels_for("cpu", None, SUITE, "level1_19_|level2_7_")
    first, second, third = islice(variants(kernels), 3)
    assert first.problem.id == third.problem.id != second.problem.id
    assert len({each.source for each in (first, second, third)}) == 3
    assert "class ModelNew(Model)" in first.source and "load_inline" not in first.source


def test_a_backend_that_does_not_run_there_is_refused():
    with pytest.raises(UsageError, match="cuda kernels don't run on cpu; --backend takes cpp"):
        kernels_for("cpu", "cuda", None, None)
    assert kernels_for("cuda:0", "triton", None, None)[0].name.startswith("triton/")
