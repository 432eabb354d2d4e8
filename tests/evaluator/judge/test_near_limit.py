"""What fp32 admits: arithmetic with another rounding, up to a limit that no luck moves."""

from __future__ import annotations

import pytest

from evaluator.evaluation import Status
from tests.task import as_candidate, task
from tools.diagnosis.diagnose import explain

GROUP_NORM = task(
    "return F.leaky_relu(self.norm(self.linear(x)))",
    init="self.linear = nn.Linear(512, 512)\nself.norm = nn.GroupNorm(32, 512)",
    # All positive: an output is the same for many rows, nearly, and small in whole columns.
    x="torch.rand(256, 512)",
)
STRASSEN = """
def strassen(a, b, levels):
    if levels == 0:
        return a @ b
    (a11, a12), (a21, a22) = (half.chunk(2, 1) for half in a.chunk(2))
    (b11, b12), (b21, b22) = (half.chunk(2, 1) for half in b.chunk(2))
    p1 = strassen(a11 + a22, b11 + b22, levels - 1)
    p2 = strassen(a21 + a22, b11, levels - 1)
    p3 = strassen(a11, b12 - b22, levels - 1)
    p4 = strassen(a22, b21 - b11, levels - 1)
    p5 = strassen(a11 + a12, b22, levels - 1)
    p6 = strassen(a21 - a11, b11 + b12, levels - 1)
    p7 = strassen(a12 - a22, b21 + b22, levels - 1)
    left = torch.cat([p1 + p4 - p5 + p7, p2 + p4])
    return torch.cat([left, torch.cat([p3 + p5, p1 - p2 + p3 + p6])], 1)
"""


def by_strassen(levels: int) -> str:
    product = f"strassen(x, self.linear.weight.t(), {levels}) + self.linear.bias"
    head, module = as_candidate(GROUP_NORM).replace("self.linear(x)", product).split("class", 1)
    return f"{head}{STRASSEN}\n\nclass{module}"


@pytest.mark.thorough
def test_one_level_is_admitted(evaluate):
    evaluation = evaluate(by_strassen(1), GROUP_NORM)
    assert evaluation.status is Status.CORRECT, explain(evaluation, "")


@pytest.mark.thorough
def test_a_kernel_near_a_limit_is_refused_for_the_same_element_each_time(evaluate):
    places = set()
    for _ in range(2):
        evaluation = evaluate(by_strassen(2), GROUP_NORM)
        assert (evaluation.status, evaluation.reason) == (Status.INCORRECT, "wrong_values")
        assert "decide where an error is near its limit" in evaluation.message
        assert "in that column; 64 times is allowed" in explain(evaluation, "")
        places.add(evaluation.correctness.mismatch.furthest)
    assert len(places) == 1
