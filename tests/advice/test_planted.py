"""The planted kernels are what they say, as far as that shows without a GPU."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from evaluator.builder.builder import Builder
from tests.advice.case import SIDES, Case, Side
from tests.advice.planted import CASES
from tests.nvcc import needs_nvcc
from tools.advice.rules import GPU_ADVICE

by_name = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def test_there_are_enough_of_them_and_their_names_differ() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 22
    assert len(frozenset().union(*(case.rules for case in CASES))) >= 20


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
    assert case.build_request("planted").cuda_sources != case.build_request("mended").cuda_sources
    for line in (case.cuda + case.forward).split("\n"):
        assert line[:1] in ("", " ", "-", "+"), line


@by_name
def test_the_rules_that_name_a_fault_are_in_the_table(case: Case) -> None:
    assert case.rules and case.rules <= {rule.name for rule in GPU_ADVICE}


@pytest.mark.slow
@needs_nvcc
@pytest.mark.parametrize("side", SIDES)
@by_name
def test_both_sides_build(case: Case, side: Side, shared_cache: Path) -> None:
    outcome = Builder(shared_cache, cuda_arch="9.0a").build(case.build_request(side))
    assert outcome.ok and outcome.headers == "light", outcome.log
