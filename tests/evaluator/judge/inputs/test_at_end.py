"""In some call each input ends where memory ends: what is read or written behind it shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from evaluator.evaluation import Status
from evaluator.judge.inputs.mapped_arguments import MappedArguments
from evaluator.judge.inputs.placement import Placement
from problems.loader import load_suite
from tests.task import as_candidate, task

ROOT = Path(__file__).parents[4]
BEHIND = "import ctypes\nctypes.string_at({0}.data_ptr() + {0}.nbytes, 64)\n"


@pytest.mark.parametrize("at_end", [0, 1, 2])
def test_one_input_ends_where_memory_ends_and_the_others_lie_before_it(at_end: int) -> None:
    values = [
        torch.arange(n).to(dtype)
        for n, dtype in ((7, torch.int64), (90, torch.half), (0, torch.float32))
    ]
    arena = torch.zeros(2**13, dtype=torch.uint8)
    laid = MappedArguments(arena, Placement(torch.zeros_like(arena), 512, at_end=at_end), values)
    laid.lay()
    places = [(each["offset"], each["offset"] + each["span"]) for each in laid.arguments]
    assert places[at_end][0] % 64 == 0
    assert arena.numel() - places[at_end][1] < 64
    assert max(places) == places[at_end]
    for (first, end), value in zip(places, values, strict=True):
        assert torch.equal(arena[first:end].view(value.dtype), value)
        for margin in (arena[first - 64 : first], arena[end : end + 64]):
            assert bool((margin == 0xFF).all())
    assert laid.holds()
    assert laid.holds(around=True)
    arena[places[at_end][0] - 1] = 0
    assert not laid.holds(around=True)


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (BEHIND, "reads memory beyond the end of input 2"),
        ("import ctypes\nctypes.memset({0}.data_ptr() + {0}.nbytes, 1, 64)\n", "writes to memory"),
    ],
)
def test_going_beyond_any_of_four_inputs_is_a_memory_error(evaluate, act: str, said: str) -> None:
    inputs = dict.fromkeys("abcd", "torch.rand(500)")
    reference = task("return a + b + c + d", **inputs)
    goes_on = task(act.format("c") + "return a + b + c + d", **inputs)
    evaluation = evaluate(as_candidate(goes_on), reference)
    assert (evaluation.status, evaluation.reason) == (Status.RUNTIME_ERROR, "memory_error")
    assert f"forward {said}" in evaluation.message


def test_where_eager_itself_reads_on_nobody_is_blamed(evaluate) -> None:
    reads = task(BEHIND.format("x") + "return torch.tanh(x)", x="torch.rand(512, 512)")
    evaluation = evaluate(as_candidate(reads), reads)
    assert evaluation.status is Status.CORRECT, evaluation.message
    assert evaluation.correctness.calls_judged >= 3
    assert any("eager PyTorch itself reads beyond" in note for note in evaluation.notes)


@pytest.mark.thorough
def test_eager_survives_it_on_all_our_problems() -> None:
    assert _survived("cpu") == [problem.id for problem in load_suite()]


@pytest.mark.gpu
def test_eager_survives_it_on_all_our_problems_on_a_gpu() -> None:
    assert _survived("cuda:0") == [problem.id for problem in load_suite()]


def _survived(device: str) -> list[str]:
    command = [sys.executable, "-m", "tests.evaluator.judge.inputs.eager_at_end", device]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout.split()
