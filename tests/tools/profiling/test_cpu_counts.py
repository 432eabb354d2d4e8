from __future__ import annotations

import pytest

from tests.tools.advice.test_diagnosis import cpu
from tools.advice.figures import figures
from tools.profiling.cpu_counts import counted, counted_words

COUNTS = {
    "cycles": 1e6, "instructions": 8e5, "cache_references": 4e4, "cache_misses": 1e4,
    "branches": 1e5, "branch_misses": 5e3, "l1_loads": 3e5, "l1_misses": 6e4,
}  # fmt: skip


def test_counts_become_ratios() -> None:
    assert dict(counted(COUNTS, 1e6)) == pytest.approx(
        {
            "cycle_instructions": 0.8,
            "branch_misses_per_cycle": 0.005,
            "l1_misses_per_cycle": 0.06,
            "branch_miss_share": 0.05,
            "l1_miss_share": 0.2,
            "cache_miss_share": 0.25,
            "cache_lines_ratio": 3.84,
        }
    )
    assert counted_words(COUNTS) == (
        "0.80 instructions a cycle; missed: 20 % of L1 loads, 25 % of accesses to the last cache,"
        " 5 % of branches"
    )


def test_what_was_not_counted_is_left_out() -> None:
    assert dict(counted({}, 1e6)) == {}
    assert counted_words({}) == ""
    assert counted_words({"cycles": 0.0, "instructions": 0.0, "branches": 0.0}) == ""
    assert counted_words({"cycles": 2.0, "instructions": 3.0}) == "1.50 instructions a cycle"


def test_they_are_among_the_figures_of_a_cpu() -> None:
    facts = cpu()
    collected = facts.collected
    trace = facts.cpu.model_copy(update={"counts": COUNTS})
    counted_too = type(facts)(
        collected.model_copy(update={"cpu": trace}), own=facts.own, latency_us=facts.latency_us
    )
    assert figures(counted_too)["cycle_instructions"] == pytest.approx(0.8)
    assert "cycle_instructions" not in figures(facts)
