"""Our own problems: well declared, and they run at the sizes they declare for a CPU."""

import math

import pytest
import torch

from evaluator.judge.problem.reference import Reference
from evaluator.settings import Precision
from problems.loader import load_suite
from problems.problem import Problem
from problems.sizes import SizeClass

CATEGORIES = {
    "attention",
    "convolution",
    "elementwise",
    "fusion",
    "index",
    "loss",
    "matmul",
    "network",
    "normalization",
    "pooling",
    "reduction",
    "scan",
    "softmax",
}
PROBLEMS = load_suite()


def test_the_suite_covers_what_it_should() -> None:
    assert len(PROBLEMS) >= 24
    assert {problem.level for problem in PROBLEMS} == {1, 2, 3}
    assert {problem.category for problem in PROBLEMS} == CATEGORIES
    assert len({problem.id for problem in PROBLEMS}) == len(PROBLEMS)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.id)
def test_a_problem_runs_at_its_cpu_sizes(problem: Problem) -> None:
    source = problem.reference(SizeClass.CPU)
    assert source != problem.reference(SizeClass.GPU)
    assert "CPU_SIZES" not in source
    assert "CATEGORY" not in source

    reference = Reference(source, torch.device("cpu"), Precision.FP32)
    reference.set_state(reference.randomised(1))
    arguments = reference.fresh_inputs(2)
    assert sum(t.numel() for t in arguments if isinstance(t, torch.Tensor)) <= 4.2e6

    state = {name: tensor.clone() for name, tensor in reference.model.state_dict().items()}
    with torch.no_grad():
        reference.model(*arguments)
    for name, tensor in reference.model.state_dict().items():
        assert torch.equal(tensor, state[name]), f"a call changes {name}"

    for output in reference.expected(arguments):
        values = output.double()
        assert bool(torch.isfinite(values).all())
        rms = math.sqrt(float(values.square().mean()))
        assert float(values.std()) > 0.05 * rms
