"""Candidates whose inline sources are built: at import, later, in vain, and at their worst."""

from __future__ import annotations

import pytest

from evaluator.evaluation import Status
from tests.evaluator.deep_audit.programs import program

BUILT = program('TORCH_CHECK(x.dim() == 2, "two dimensions");')
RIGHT, WRONG = "const float* from = x", "const float* from = no_such_name"


def test_inline_sources_are_built_by_the_trusted_builder(evaluate):
    first = evaluate(BUILT)
    assert first.status is Status.CORRECT, first.message
    assert first.build.ok
    assert first.build.headers == "light"
    again = evaluate(BUILT)
    assert again.build.cached


_DEFERRED = (
    BUILT.replace("import torch\n", "import functools\nimport torch\n", 1)
    .replace("\nkernels = load_inline(", "\nload = functools.cache(lambda: load_inline(")
    .replace('extra_cflags=["-O2"])', 'extra_cflags=["-O2"]))')
)
PHASES = {
    "import": BUILT,
    "construct": _DEFERRED.replace(
        "super().__init__()", "super().__init__()\n        self.kernels = load()"
    ).replace("return kernels.", "return self.kernels."),
    "call": _DEFERRED.replace("return kernels.", "return load()."),
}


@pytest.mark.parametrize("phase", PHASES)
def test_what_does_not_build_says_why(evaluate, phase):
    evaluation = evaluate(PHASES[phase].replace(RIGHT, WRONG))
    assert (evaluation.status, evaluation.reason) == (Status.BUILD_ERROR, "compile_failed")
    assert "no_such_name" in evaluation.detail
    assert "no_such_name" in evaluation.build.log


def test_a_failed_check_in_compiled_code_is_the_candidates_own_error(evaluate):
    evaluation = evaluate(BUILT.replace("x.dim() == 2", "x.dim() == 3"))
    assert (evaluation.status, evaluation.reason) == (Status.RUNTIME_ERROR, "forward_raised")
    assert "two dimensions" in evaluation.message
