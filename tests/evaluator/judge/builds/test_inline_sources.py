"""Candidates whose inline sources are built: at import, later, in vain, and at their worst."""

from __future__ import annotations

import pytest

from evaluator.evaluation import Status

BUILT = """
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r'''
#include <torch/extension.h>

torch::Tensor scaled(torch::Tensor x, torch::Tensor scale, torch::Tensor bias) {
    TORCH_CHECK(x.dim() == 2, "two dimensions");
    auto y = torch::empty_like(x);
    const float* in = x.data_ptr<float>();
    const float* s = scale.data_ptr<float>();
    const float* b = bias.data_ptr<float>();
    float* out = y.data_ptr<float>();
    const int64_t rows = x.size(0), columns = x.size(1);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            const float v = in[i * columns + j] * s[j] + b[j];
            out[i * columns + j] = v > 0 ? 2 * v : 0;
        }
    return y;
}
'''
kernels = load_inline(name="kernels", cpp_sources=source, functions=["scaled"], verbose=True)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(features))
        self.scale = nn.Parameter(torch.ones(features))

    def forward(self, x):
        return kernels.scaled(x, self.scale, self.bias)
"""


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
    .replace("verbose=True)", "verbose=True))")
)
LATER = {
    "construct": _DEFERRED.replace(
        "super().__init__()", "super().__init__()\n        self.kernels = load()"
    ).replace("return kernels.", "return self.kernels."),
    "call": _DEFERRED.replace("return kernels.", "return load()."),
}


@pytest.mark.thorough
@pytest.mark.parametrize("phase", LATER)
def test_what_does_not_build_later_says_why(evaluate, phase):
    wrong = LATER[phase].replace("const float* in = x", "const float* in = no_such_name")
    evaluation = evaluate(wrong)
    assert (evaluation.status, evaluation.reason) == (Status.BUILD_ERROR, "compile_failed")
    assert "no_such_name" in evaluation.detail


def test_what_does_not_build_says_why(evaluate):
    evaluation = evaluate(BUILT.replace("const float* in = x", "const float* in = no_such_name"))
    assert (evaluation.status, evaluation.reason) == (Status.BUILD_ERROR, "compile_failed")
    assert "no_such_name" in evaluation.build.log


def test_a_failed_check_in_compiled_code_is_the_candidates_own_error(evaluate):
    evaluation = evaluate(BUILT.replace("x.dim() == 2", "x.dim() == 3"))
    assert (evaluation.status, evaluation.reason) == (Status.RUNTIME_ERROR, "forward_raised")
    assert "two dimensions" in evaluation.message
