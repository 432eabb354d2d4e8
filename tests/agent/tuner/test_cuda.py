"""CUDA kernels of the tuner: that nvcc takes them, and what their schedules say."""

import re
from pathlib import Path
from random import Random

import pytest

from agent.tuner import answer
from agent.tuner.planning.policy import MOVES
from agent.tuner.planning.prompt import fenced
from agent.tuner.planning.schedule import Schedule, space
from evaluator.builder.builder import Builder
from problems.sizes import SizeClass
from tests.agent.tuner.families import FAMILIES
from tests.agent.tuner.prompts import POINTWISE, SOFTMAX, Turn, prompt
from tests.agent.tuner.written import candidate, chosen, claimed, request, safe
from tests.nvcc import needs_nvcc
from tools.profiling.profile_report import Bottleneck

EVEN = {"129": "136", "19)": "24)", "517": "516", "70001": "70008", "31)": "32)"}
"""Sizes that vectors divide in place of those that they don't."""

BOLD = {
    "vec": "4", "threads": "64", "team": "32", "stage": "regs", "items": "2", "maths": "fast",
    "acc": "fp32",
}  # fmt: skip


def even(text: str) -> str:
    for odd, size in EVEN.items():
        text = text.replace(odd, size)
    return text


@pytest.fixture(scope="session")
def cache(shared_cache: Path) -> Path:
    return shared_cache


@pytest.fixture(scope="session")
def builder(cache: Path) -> Builder:
    return Builder(cache, cuda_arch="9.0a")


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


@pytest.mark.parametrize("family", ["map", "rows"])
def test_a_plan_is_a_line_that_reads_back(family: str) -> None:
    known = space("cuda", family)
    longest = Schedule(family, {k.name: max(k.choices, key=len) for k in known.knobs})
    assert len(longest.plan()) <= 120
    for schedule in (known.default(), longest):
        read = Schedule.parse(f"# plan: {schedule.plan()}\n")
        assert read is not None and known.adopt(read) == schedule


@pytest.mark.parametrize("bottleneck", Bottleneck)
@pytest.mark.parametrize("reference", [even(POINTWISE), SOFTMAX])
def test_the_bottleneck_picks_the_next_move(reference: str, bottleneck: Bottleneck) -> None:
    base = chosen(reference)
    asked = prompt(reference, [Turn(base, "correct", 1.5)], "GEP", 0, bottleneck, "cuda")
    new = Schedule.parse(fenced(answer(asked, None, 0)))
    assert new is not None
    moved = {(k, v) for k, v in new.choices.items() if base[k] != v}
    moves = [
        {
            (k, v)
            for k, v in (pair.split("=") for pair in move.split())
            if base.choices.get(k, v) != v
        }
        for move in MOVES["cuda"].get(bottleneck, ())
    ]
    known = [move for move in moves if move]
    assert moved in known if known else len(moved) == 1


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
