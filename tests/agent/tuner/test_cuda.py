"""CUDA kernels of the tuner: that nvcc takes them, and what their schedules say."""

import re
from pathlib import Path
from random import Random

import pytest

from agent.tuner import answer
from agent.tuner.planning.prompt import fenced
from agent.tuner.planning.schedule import Schedule
from evaluator.builder.builder import Builder
from problems.sizes import SizeClass
from tests.agent.tuner.families import FAMILIES
from tests.agent.tuner.prompts import SOFTMAX, Turn, prompt
from tests.agent.tuner.written import candidate, chosen, claimed, request, safe
from tests.nvcc import needs_nvcc

BOLD = {
    "vec": "4", "threads": "64", "team": "32", "stage": "regs", "items": "2", "acc": "fp32",
}  # fmt: skip


@pytest.fixture(scope="session")
def builder(shared_cache: Path) -> Builder:
    return Builder(shared_cache, cuda_arch="9.0a")


@pytest.mark.thorough
@needs_nvcc
@pytest.mark.parametrize("name", ["softmax"])
def test_nvcc_takes_it_over_the_light_headers(builder: Builder, name: str) -> None:
    outcome = builder.build(request(FAMILIES[name], chosen(FAMILIES[name], **BOLD)))
    assert outcome.ok, outcome.log
    assert outcome.headers == "light"


@needs_nvcc
@pytest.mark.slow
@pytest.mark.parametrize("draw", ["default", "one", "two"])
def test_nvcc_takes_every_problem_that_is_claimed(builder: Builder, draw: str) -> None:
    refused = {}
    for name, reference in claimed(SizeClass.GPU).items():
        random = Random(f"{draw} {name}")
        schedule = chosen(reference) if draw == "default" else safe(reference, random)
        outcome = builder.build(request(reference, schedule))
        if not outcome.ok or outcome.headers != "light":
            refused[name] = f"{schedule.plan()} {outcome.headers} {outcome.log[:1000]}"
    assert not refused


def test_a_block_that_no_device_launches_is_backed_out_of() -> None:
    base = chosen(SOFTMAX).replace("threads", "2048")
    asked = prompt(SOFTMAX, [Turn(base, "runtime_error")], "GE", backend="cuda")
    new = Schedule.parse(fenced(answer(asked, None, 0)))
    assert new is not None and new["threads"] == "256"


def test_where_the_library_keeps_the_time_the_answer_says_so() -> None:
    base = chosen(SOFTMAX)
    asked = prompt(SOFTMAX, [Turn(base, "correct", 1.0)], "GEP", 0, "library", "cuda")
    assert "PyTorch's own kernels" in answer(asked, None, 0).partition("```")[0]


def test_large_tensors_are_walked_with_64_bit_indices() -> None:
    small = candidate(SOFTMAX, chosen(SOFTMAX))
    large = SOFTMAX.replace("(33, 700)", "(4000000, 700)")
    assert "const int row = blockIdx.x;" in small
    text = candidate(large, chosen(large))
    assert "const int64_t row = blockIdx.x;" in text
    assert not re.search(r"const int (row|begin|mine)\b", text)
