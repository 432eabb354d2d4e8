"""Kernels of the tuner, built by the trusted builder and run against PyTorch."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from problems.loader import load_suite
from problems.sizes import SizeClass
from tests.agent.tuner.families import FAMILIES
from tests.agent.tuner.variants import renamed, resized
from tests.agent.tuner.written import written

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[3]
LIMIT = 10.0
"""Our error over PyTorch's; the judge's own limit is 32."""


def run(cache: Path, cases: dict[str, tuple[str, str]]) -> dict[str, dict]:
    """`cases`: name -> (reference, kernel)."""
    asked = [{"name": n, "reference": r, "kernel": k} for n, (r, k) in cases.items()]
    done = subprocess.run(
        [sys.executable, "-m", "tests.agent.tuner.run_kernels", str(cache)],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "OMP_WAIT_POLICY": "passive"},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def failures(report: dict[str, dict]) -> dict[str, dict]:
    return {
        name: facts
        for name, facts in report.items()
        if "error" in facts or facts["ratio"] > LIMIT or facts["wrong"] > 0.001
    }


CAREFUL = {"threads": "all"}
BOLD = {
    "threads": "all", "vec": "16", "maths": "poly", "stage": "stack", "chunk": "1",
}  # fmt: skip


def claimed(**choices: str) -> dict[str, tuple[str, str]]:
    cases = {}
    for problem in load_suite():
        reference = resized(renamed(problem.reference(SizeClass.CPU)))
        kernel = written(reference, **choices)
        if kernel:
            cases[problem.id] = (reference, kernel)
    return cases


def test_some_problems_and_every_family_with_the_careful_schedule(shared_cache: Path) -> None:
    """In one process, so that PyTorch is imported once."""
    some = {f"problem {n}": c for n, c in list(claimed(**BOLD).items())[::5]}
    assert len(some) >= 5
    careful = {f"family {n}": (text, written(text, **CAREFUL)) for n, text in FAMILIES.items()}
    report = run(shared_cache, some | careful)
    assert len(report) == len(some) + len(FAMILIES)
    assert not failures(report)


@pytest.mark.slow
def test_every_problem_that_is_claimed_renamed_and_resized(shared_cache: Path) -> None:
    cases = claimed(**BOLD)
    assert len(cases) >= 24
    assert not failures(run(shared_cache, cases))


@pytest.mark.slow
@pytest.mark.parametrize(
    "choices",
    [
        {"vec": "4", "threads": "all", "maths": "libm", "stage": "stack", "chunk": "256"},
        {"vec": "8", "threads": "all", "maths": "poly", "unroll": "on", "chunk": "64"},
        {"vec": "16", "threads": "all", "maths": "poly", "acc": "fp32", "chunk": "16"},
    ],
    ids=lambda c: "_".join(c.values()),
)
def test_every_family_with_other_schedules(shared_cache: Path, choices: dict[str, str]) -> None:
    cases = {name: (text, written(text, **choices)) for name, text in FAMILIES.items()}
    assert not failures(run(shared_cache, cases))
