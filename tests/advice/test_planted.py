"""The rules name the faults of planted kernels, from profiles that were stored on a GPU.

`planted.py` has the kernels that are run again; `git show 6ad351a:tests/advice/` has all of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.builder.builder import Builder
from tests.advice.case import SIDES, Case, Side
from tests.advice.measured import DATA, Measured, stored
from tests.advice.planted import CASES
from tests.nvcc import needs_nvcc
from tools.advice.score import has_moved
from tools.advice.thresholds import LIMITS

MEASURED = {(each.case, each.side): each for each in stored(DATA / "planted.jsonl.gz")}
RULES = {
    "row_sums": {"uncoalesced_loads"},
    "transpose_stores": {"uncoalesced_stores"},
    "banks_transpose": {"bank_conflicts"},
    "few_blocks": {"too_few_blocks"},
    "tail_wave": {"tail_wave"},
    "tiny_blocks": {"small_blocks"},
    "uneven_rows": {"uneven_work"},
    "many_launches": {"launch_bound"},
    "scalar_halves": {"scalar_access"},
    "register_walk": {"occupancy_registers"},
    "sort_spills": {"register_spills"},
    "local_counts": {"local_arrays"},
    "barrier_scan": {"barrier_wait"},
    "serial_bags": {"memory_latency"},
    "double_gelu": {"fp64_arithmetic"},
    "no_tensor_cores": {"no_tensor_cores"},
    # Own kernels one after another over the same data are what makes its traffic redundant.
    "softmax_passes": {"redundant_passes", "unfused_kernels"},
    "four_statistics": {"redundant_passes"},
    "around_a_kernel": {"library_time"},
    "one_stage": {"memory_latency", "dram_rate"},
    "cleared_scratch": {"launch_bound"},
}
"""By kernel, the rules that name its fault; several only where they mean the same thing."""


def assert_fault_is_named(planted: Measured, fixed: Measured) -> None:
    """The first advice names the fault; fixed, it is gone, its figure moved, the time fell."""
    rules, first = RULES[planted.case], planted.diagnosis.advice[0]
    assert first.rule in rules
    assert not rules & {advice.rule for advice in fixed.diagnosis.advice}
    assert has_moved(first, fixed.figures[first.figure])
    assert fixed.latency_us < planted.latency_us


def test_each_kernel_was_measured_once() -> None:
    assert set(MEASURED) == {(name, side) for name in RULES for side in SIDES}
    assert {case.name for case in CASES} <= set(RULES)


@pytest.mark.parametrize("name", RULES)
def test_the_first_advice_names_the_planted_fault(name: str) -> None:
    assert_fault_is_named(MEASURED[name, "planted"], MEASURED[name, "fixed"])


@pytest.mark.parametrize("measured", MEASURED.values(), ids=lambda each: f"{each.case}-{each.side}")
def test_no_advice_is_about_what_a_kernel_does_not_do(measured: Measured) -> None:
    figures, rules = measured.figures, {advice.rule for advice in measured.diagnosis.advice}
    if not any(figures.get(f"shared_{kind}_wavefronts", 1.0) for kind in ("load", "store")):
        assert not rules & {"shared_memory_queue", "bank_conflicts"}
    if figures.get("traffic_ratio", 2.0) < LIMITS.least_traffic:
        assert "dram_bound" not in rules


@pytest.mark.slow
@needs_nvcc
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_both_sides_build(case: Case, side: Side, shared_cache: Path) -> None:
    outcome = Builder(shared_cache, cuda_arch="9.0a").build(case.build_request(side))
    assert outcome.ok and outcome.headers == "light", outcome.log
