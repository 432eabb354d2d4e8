"""The light headers against PyTorch itself: real compilers, real calls, on the CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.builder.builder import Builder
from tests.evaluator.builder.cpp_candidates import CANDIDATES
from tests.evaluator.builder.cuda_candidates import CUDA


def reported(kind: str, cache: Path) -> dict:
    done = subprocess.run(
        [sys.executable, "-m", "tests.evaluator.builder.run_candidates", kind, str(cache)],
        capture_output=True,
        text=True,
        timeout=900,
        env=os.environ | {"OMP_NUM_THREADS": "2"},
    )
    assert done.returncode == 0, done.stderr
    # Nothing but the report: the stub prints nothing, however verbose the candidate is.
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def report(builder: Builder, cache: Path) -> dict:
    return reported("cpp", cache)


@pytest.fixture(scope="module")
def cuda_report(builder: Builder, cache: Path) -> dict:
    return reported("cuda", cache)


@pytest.mark.slow
@pytest.mark.parametrize("name", CANDIDATES)
def test_a_candidate_as_models_write_them_computes_what_pytorch_does(report, name):
    assert report[name]["problem"] == ""
    if name != "a_failed_build_is_pytorchs_error":
        assert report[name]["headers"] == "light"
        assert report[name]["log"] == ""


@pytest.mark.gpu
@pytest.mark.parametrize("name", CUDA)
def test_a_cuda_candidate_computes_what_pytorch_does(cuda_report, name):
    assert cuda_report[name]["problem"] == ""
    assert cuda_report[name]["headers"] == "light"
