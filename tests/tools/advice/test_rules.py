from __future__ import annotations

from graphlib import TopologicalSorter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.advice.figures_at_hand import CALM, CPU_CALM, CPU_CASES, GPU_CASES, Figures
from tools.advice.cpu import CPU_ADVICE
from tools.advice.rules import EXPLAINS, GPU_ADVICE, advise
from tools.advice.thresholds import LIMITS
from tools.advice.units import UNITS
from tools.profiling.profile_report import MOST_ADVICE, Advice

CASES = [
    *((rule, CALM, *case) for rule, case in GPU_CASES.items()),
    *((rule, CPU_CALM, *case) for rule, case in CPU_CASES.items()),
]
NAMES = [rule.name for rule in (*GPU_ADVICE, *CPU_ADVICE)]


def rules(figures: Figures) -> list[str]:
    return [advice.rule for advice in advise(figures, "own_k")]


def test_every_rule_has_a_case_and_a_name_of_its_own() -> None:
    assert [rule.name for rule in GPU_ADVICE if rule.name not in GPU_CASES] == []
    assert [rule.name for rule in CPU_ADVICE if rule.name not in CPU_CASES] == []
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("calm", [CALM, CPU_CALM])
def test_nothing_is_said_about_what_is_well(calm: Figures) -> None:
    assert rules(calm) == []


@pytest.mark.parametrize(("rule", "calm", "planted", "mended"), CASES)
def test_a_fault_is_named_first_and_its_absence_is_silent(
    rule: str, calm: Figures, planted: Figures, mended: Figures
) -> None:
    advice = advise(calm | planted, "own_k")[0]
    assert advice.rule == rule
    assert rule not in rules(calm | planted | mended)
    assert LIMITS.least_gain <= advice.gain <= 1.0
    assert advice.before == (calm | planted)[advice.figure]
    assert advice.evidence.endswith(".")
    assert advice.change.endswith(".")
    assert "{" not in advice.evidence + advice.change


def test_the_figure_to_watch_has_a_unit() -> None:
    watched = {figure for rule in (*GPU_ADVICE, *CPU_ADVICE) for figure, _ in rule.watch}
    assert watched <= set(UNITS)


def test_at_most_three_best_first() -> None:
    everything = CALM.copy()
    for planted, _ in GPU_CASES.values():
        everything |= planted
    everything |= {"launches": 1.0, "busy_share": 1.0}
    given = advise(everything)
    assert len(given) == MOST_ADVICE
    assert [advice.gain for advice in given] == sorted((a.gain for a in given), reverse=True)


def test_a_cause_is_named_and_its_symptom_is_not() -> None:
    waits = GPU_CASES["memory_latency"][0]
    assert rules(CALM | waits) == ["memory_latency"]
    assert rules(CALM | waits | GPU_CASES["uncoalesced_loads"][0]) == ["uncoalesced_loads"]


def test_a_slight_cause_does_not_hide_a_grave_symptom() -> None:
    figures = CALM | GPU_CASES["memory_latency"][0] | GPU_CASES["uncoalesced_loads"][0]
    figures["load_sector_share"] = 0.15
    assert rules(figures) == ["memory_latency", "uncoalesced_loads"]


def test_explanations_name_rules_and_run_one_way() -> None:
    assert set(EXPLAINS) <= set(NAMES)
    assert {name for symptoms in EXPLAINS.values() for name in symptoms} <= set(NAMES)
    TopologicalSorter(EXPLAINS).prepare()  # raises CycleError


def test_near_the_bound_nothing_is_said() -> None:
    figures = CALM | GPU_CASES["uncoalesced_loads"][0]
    assert rules(figures | {"sol_fraction": 0.84})
    assert rules(figures | {"sol_fraction": 0.86}) == []


def test_no_advice_promises_more_than_is_left_to_the_bound() -> None:
    figures = CALM | GPU_CASES["uncoalesced_loads"][0] | {"memory_weight": 1.0, "dram_pct": 10.0}
    assert advise(figures)[0].gain == pytest.approx(0.7)
    assert advise(figures | {"sol_fraction": 0.8})[0].gain == pytest.approx(0.2)


def test_a_gain_counts_for_the_kernel_s_share_of_the_call() -> None:
    figures = CALM | GPU_CASES["tail_wave"][0]
    whole, half = (advise(figures | {"hot_share": share})[0].gain for share in (1.0, 0.5))
    assert half == pytest.approx(whole / 2)


def test_a_product_with_tiles_that_waits_for_loads_is_told_to_load_ahead() -> None:
    """As a flash attention on an H100, with 8x8 scores a thread, at 70 % of the library's rate."""
    figures = CALM | GPU_CASES["fp32_matrix"][0] | {"flops_share": 0.7}
    tiles = {"registers": 191.0, "stall_long_scoreboard_share": 0.3}
    ahead = advise(figures | tiles)[0]
    assert (ahead.rule, ahead.figure) == ("fp32_matrix", "flops_share")
    assert ahead.change.startswith("Load the next tile while this one is used")
    for other in ({"registers": 40.0}, {"stall_long_scoreboard_share": 0.1}):
        assert advise(figures | tiles | other)[0].change.startswith("Do more for each operand")


def test_width_of_the_accesses_is_needed_to_call_sixteen_sectors_scattered() -> None:
    unknown = {name: value for name, value in CALM.items() if "efficiency" not in name}
    assert rules(unknown | {"sectors_per_load": 16.0}) == []
    assert rules(unknown | {"sectors_per_load": 32.0, "load_sector_share": 0.9}) == [
        "uncoalesced_loads"
    ]


def test_without_counters_times_and_launches_still_tell() -> None:
    known = ("latency_us", "whole_us", "busy_us", "busy_share", "launches", "kernel_us", "grid",
             "block", "sm_count", "blocks_per_sm", "hot_share", "effective_launches",
             "longest_share", "library_share")  # fmt: skip
    traced = {name: CALM[name] for name in known}
    assert rules(traced) == []
    for rule in ("launch_bound", "library_time", "too_few_blocks", "small_blocks"):
        planted = GPU_CASES[rule][0]
        held = traced | {name: value for name, value in planted.items() if name in known}
        assert rules(held) == [rule]
    chain = {"launches": 4.0, "effective_launches": 4.0, "longest_share": 0.25, "kernel_us": 24.0}
    assert rules(traced | chain) == ["unfused_kernels"]


FIGURE = st.one_of(
    st.sampled_from([0.0, 1.0, 2.0, 32.0, 100.0]), st.floats(0.0, 1e9, allow_subnormal=False)
)


@given(st.data())
def test_any_figures_may_be_missing_or_odd(data: st.DataObject) -> None:
    calm = data.draw(st.sampled_from([CALM, CPU_CALM]))
    kept = data.draw(st.sets(st.sampled_from(sorted(calm))))
    given_ = {name: data.draw(st.one_of(st.just(calm[name]), FIGURE)) for name in sorted(kept)}
    advice = advise(given_, "own_k")
    assert len(advice) <= MOST_ADVICE
    assert all(isinstance(piece, Advice) and 0.0 <= piece.gain <= 1.0 for piece in advice)
