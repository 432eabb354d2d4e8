"""Programs by an author who had not seen the judge's rules: each verdict, and each cause's name.

`blind/causes.csv` says what was planted, and the pattern that must come first: one of several where
that depends on the inputs.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator.evaluation import Backend, Candidate, EvaluationRequest
from evaluator.executor.local import LocalExecutor
from evaluator.settings import Settings
from problems.loader import load_suite
from problems.sizes import SizeClass

FOLDER = Path(__file__).with_name("blind")
PLANTED = list(csv.DictReader((FOLDER / "causes.csv").read_text().splitlines()))


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("cpu", marks=pytest.mark.slow),
        pytest.param("cuda:0", marks=pytest.mark.gpu),
    ],
)
def device(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def executor(device: str) -> Iterator[LocalExecutor]:
    with LocalExecutor(device) as running:
        yield running


@pytest.mark.parametrize("planted", PLANTED, ids=lambda row: row["number"])
def test_it_is_judged_rightly_and_its_cause_named(executor, device, planted) -> None:
    number = planted["number"]
    problems = load_suite(FOLDER / "problems")
    problem = next(p for p in problems if p.id.startswith(f"level1_{number}_"))
    source = (FOLDER / "kernels" / f"level_1_problem_{number}_sample_0_kernel.py").read_text()
    if device != "cpu":
        source = source.replace('autocast("cpu"', 'autocast("cuda"')
    evaluation = executor.evaluate(
        EvaluationRequest(
            problem_id=problem.id,
            reference=problem.reference(SizeClass.CPU),
            candidate=Candidate(source=source, backend=Backend.CPP),
            settings=Settings(device=device, timing_seconds=0.2, audit="never"),
        )
    )
    expected = planted["expected"]
    assert evaluation.status == expected, evaluation.message
    found = evaluation.correctness.mismatch.patterns[0]
    assert found in planted["pattern"].split(), evaluation.correctness.mismatch
