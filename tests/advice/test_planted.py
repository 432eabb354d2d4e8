"""The planted kernels are what they say, and the rules name their faults from stored profiles."""

from __future__ import annotations

import ast
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
by_name = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def assert_fault_is_named(case: Case, planted: Measured, fixed: Measured) -> None:
    """The first advice names the fault; fixed, it is gone, its figure moved, the time fell."""
    first = planted.diagnosis.advice[0]
    assert first.rule in case.rules
    assert not case.rules & {advice.rule for advice in fixed.diagnosis.advice}
    assert has_moved(first, fixed.figures[first.figure])
    assert fixed.latency_us < planted.latency_us


def test_each_case_was_measured_once() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    assert set(MEASURED) == {(case.name, side) for case in CASES for side in SIDES}


@by_name
def test_a_case_is_well_formed(case: Case) -> None:
    reference = {node.name for node in ast.parse(case.reference).body if hasattr(node, "name")}
    assert reference == {"Model", "get_inputs", "get_init_inputs"}
    for side in SIDES:
        tree = ast.parse(case.source(side))
        assert "ModelNew" in [n.name for n in tree.body if isinstance(n, ast.ClassDef)]
        request = case.build_request(side)
        assert request.name == f"{case.name}_{side}" and request.with_cuda
        assert "__global__" in request.cuda_sources[0]
    for line in (case.cuda + case.forward).split("\n"):
        assert line[:1] in ("", " ", "-", "+"), line


@by_name
def test_the_first_advice_names_the_planted_fault(case: Case) -> None:
    planted, fixed = (MEASURED[case.name, side] for side in SIDES)
    assert [case.digest(side) for side in SIDES] == [planted.kernel, fixed.kernel], (
        "measured before the kernel was changed"
    )
    assert_fault_is_named(case, planted, fixed)


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
@by_name
def test_both_sides_build(case: Case, side: Side, shared_cache: Path) -> None:
    outcome = Builder(shared_cache, cuda_arch="9.0a").build(case.build_request(side))
    assert outcome.ok and outcome.headers == "light", outcome.log
