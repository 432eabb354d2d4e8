"""What is advised on kernels that were written by hand for KernelBench tasks, profiled on an H100.

`relay_h100.jsonl` holds the figures of their profiles. What each should be told was read off the
kernels and their times, before the rules said it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.advice.diagnosis import Diagnosis, diagnose, remainder
from tools.profiling.profile_report import Bottleneck

LINES = (Path(__file__).parents[2] / "data" / "advice" / "relay_h100.jsonl").read_text()
FIGURES = {line["task"]: line["figures"] for line in map(json.loads, LINES.splitlines())}


def diagnosed(number: str) -> tuple[Diagnosis, str]:
    """Of the task with that number, and what is said where there is no advice."""
    (figures,) = (found for task, found in FIGURES.items() if task.startswith(f"{number}_"))
    found = diagnose(figures)
    return found, remainder(found.bottleneck, figures)


@pytest.mark.parametrize(("task", "rate"), [("level2_37", "97 %"), ("level3_43", "87 %")])
def test_a_library_product_at_the_rate_of_the_device_is_left_alone(task: str, rate: str) -> None:
    """cuBLAS takes 94 % of the time, and the candidate's own kernel the rest."""
    found, left = diagnosed(task)
    assert found.bottleneck is Bottleneck.LIBRARY
    assert found.advice == ()
    assert f"at {rate} of the rate measured here: leave them to it" in found.headline
    assert "DRAM" not in found.headline + left


def test_a_slow_library_convolution_is_worth_a_kernel_of_ones_own() -> None:
    """It writes 520 MB that three further kernels read."""
    found, _ = diagnosed("level2_85")
    assert found.advice[0].rule == "library_time"
    assert "reach 53 % of the rate measured here" in found.advice[0].evidence


@pytest.mark.parametrize("task", ["level1_91", "level1_95"])
def test_at_the_rate_of_plain_copies_it_says_stop(task: str) -> None:
    found, left = diagnosed(task)
    assert found.bottleneck is Bottleneck.AT_THE_BOUND
    assert "96 % of what PyTorch's own copies and products reach here" in found.headline
    assert found.advice == ()
    assert left.startswith("Stop here, unless the last per cents matter: ")


def test_the_last_per_cents_are_broken_down() -> None:
    """The second, tiny kernel of a cross entropy, and the gap before it."""
    _, left = diagnosed("level1_95")
    assert "8 % of the call passes outside its kernels (launches and gaps)" in left
    assert "3 % of it is kernels besides the slowest of your own" in left


def test_a_product_with_large_tiles_is_not_told_to_make_tiles() -> None:
    """128x128 tiles, 8x8 results a thread, 88 % of cuBLAS: what shows is dispatch stalls."""
    found, _ = diagnosed("level1_17")
    (advice,) = found.advice
    assert advice.rule == "fp32_matrix"
    assert "dispatch stall) 47 %" in advice.evidence
    assert "128x128" not in advice.change
    assert "take the library's product" in advice.change


def test_a_product_far_from_the_librarys_is_told_to_reuse_operands() -> None:
    found, _ = diagnosed("level3_31")
    assert found.advice[0].rule == "fp32_matrix"
    assert "Do more for each operand" in found.advice[0].change
