"""The light headers against PyTorch itself: real compilers, real calls, on the CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.evaluator.build.cpp_candidates import CANDIDATES


@pytest.fixture(scope="module")
def report(builder, cache) -> dict:
    command = [sys.executable, "-m", "tests.evaluator.build.run_candidates", str(cache)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=900,
        env=os.environ | {"OMP_NUM_THREADS": "2"},
    )
    assert done.returncode == 0, done.stderr
    # Nothing but the report: the stub prints nothing, however verbose the candidate is.
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", CANDIDATES)
def test_a_candidate_as_models_write_them_computes_what_pytorch_does(report, name):
    assert report[name]["problem"] == ""
    if name != "a_failed_build_is_pytorchs_error":
        assert report[name]["headers"] == "light"
        assert report[name]["log"] == ""
