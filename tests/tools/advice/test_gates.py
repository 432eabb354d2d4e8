"""Where advice would mislead: what such a profile shows keeps its rule silent.

Each case has two sides that differ in a figure or two. On the first one the advice is done already,
or a better kernel goes the other way; on the second one it is right.
"""

from __future__ import annotations

import pytest

from tests.tools.advice.figures_at_hand import CALM, CPU_CALM, CPU_CASES, GPU_CASES, MATRIX, Figures
from tools.advice.rules import advise

BY_LIBRARY: Figures = {"product_share": 0.4, "product_rate": 0.9, "library_share": 0.4}
FP32: Figures = {"flops_ceiling": 5e13}
FEW_WARPS: Figures = {"occupancy_limit_pct": 25.0, "limit_registers": 2.0, "registers": 128.0}
SMALL: Figures = {"block": 32.0, "limit_warps": 64.0, "limit_blocks": 32.0}
CONFLICTS: Figures = {"conflict_ways": 2.0, "stall_mio_throttle_share": 0.5}
SPILLS: Figures = {"local_requests": 1e4, "local_share": 0.9}

GATES: dict[str, tuple[str, Figures, Figures, Figures]] = {
    # A product's own tiles are read again, and arithmetic is what limits it.
    "a_product_and_its_tiles": (
        "unfused_kernels",
        MATRIX | {"launches": 2.0, "effective_launches": 1.9, "traffic_ratio": 2.9,
                  "tensor_pct": 60.0},
        {"bandwidth_share": 0.02}, {"bandwidth_share": 0.25},
    ),
    "products_of_unknown_rate": (
        "library_time", MATRIX | {"library_share": 0.8, "product_share": 0.7, "tensor_pct": 60.0},
        {}, {"product_rate": 0.5},
    ),
    "dram_reads_all_used_where_other_kernels_move_more": (
        "uncoalesced_loads",
        GPU_CASES["uncoalesced_loads"][0] | {
            "dram_pct": 88.9, "traffic_ratio": 26.9, "load_efficiency": 0.4575,
            "load_sectors": 34.76e6,
        },
        {"dram_read_bytes": 512.4e6}, {"dram_read_bytes": 1100e6},
    ),
    "few_blocks_that_fill_dram": (
        "too_few_blocks", {"grid": 100.0, "blocks_per_sm": 100 / 132, "waves": 0.76},
        {"dram_pct": 88.0, "l2_pct": 96.0}, {},
    ),
    "a_kernel_no_longer_than_a_launch": (
        "too_few_blocks", GPU_CASES["too_few_blocks"][0], {"hot_us": 2.05}, {"hot_us": 20.0},
    ),
    "small_blocks_of_many_registers": (
        "small_blocks", SMALL, {"limit_registers": 8.0}, {"limit_registers": 64.0},
    ),
    "rows_too_long_for_an_sm": (
        "redundant_passes", {"dram_pct": 60.0}, {"traffic_ratio": 1.52}, {"traffic_ratio": 1.95},
    ),
    "weights_that_all_rows_share": (
        "redundant_passes", {"load_ratio": 3.0, "memory_weight": 0.9},
        {"dram_pct": 90.0}, {"dram_pct": 50.0},
    ),
    "records_that_l1_serves": (
        "uncoalesced_loads", {"sectors_per_load": 12.0, "load_efficiency": 0.33,
                              "load_sector_share": 0.8, "memory_weight": 0.9},
        {"dram_pct": 90.0}, {"dram_pct": 30.0},
    ),
    "records_that_l2_gathers": (
        "uncoalesced_stores", {"sectors_per_store": 12.0, "store_efficiency": 0.33,
                               "load_sector_share": 0.2, "memory_weight": 0.9},
        {"dram_pct": 90.0}, {"dram_pct": 30.0},
    ),
    "conflicts_of_a_few_accesses": (
        "bank_conflicts", CONFLICTS, {"shared_pct": 25.0, "shared_access_pct": 2.0},
        {"shared_access_pct": 25.0},
    ),
    "few_spills_beside_asynchronous_copies": (
        "register_spills", SPILLS | {"spill_requests": 1e4},
        {"local_per_instruction": 0.001}, {"local_per_instruction": 0.2},
    ),
    "a_small_array_beside_asynchronous_copies": (
        "local_arrays", SPILLS | {"registers": 30.0},
        {"local_per_instruction": 0.001}, {"local_per_instruction": 0.2},
    ),
    "register_tiles_of_a_product": (
        "occupancy_registers", FEW_WARPS | FP32 | {"flops_share": 0.6}, MATRIX, {},
    ),
    "registers_of_an_sm_that_holds_the_most_blocks_it_can": (
        "occupancy_registers", FEW_WARPS, {"limit_blocks": 2.0}, {"limit_blocks": 3.0},
    ),
    "registers_where_shared_memory_holds_no_more_blocks": (
        "occupancy_registers", FEW_WARPS | {"limit_shared": 2.0},
        {"shared_bytes": 9e4}, {"shared_bytes": 4e4},
    ),
    "warps_that_wait_beside_busy_tensor_cores": (
        "barrier_wait", MATRIX | GPU_CASES["barrier_wait"][0],
        {"tensor_pct": 65.0}, {"tensor_pct": 45.0},
    ),
    "enough_loads_in_flight": (
        "memory_latency", GPU_CASES["memory_latency"][0] | {"stall_long_scoreboard_share": 0.9},
        {"occupancy_pct": 95.0}, {"occupancy_pct": 60.0},
    ),
    "special_functions_in_the_queue_of_shared_memory": (
        "shared_memory_queue", GPU_CASES["shared_memory_queue"][0],
        {"shared_access_pct": 2.0}, {"shared_access_pct": 40.0},
    ),
    "special_functions_busier_than_shared_memory": (
        "shared_memory_queue", GPU_CASES["shared_memory_queue"][0] | {"shared_access_pct": 33.0},
        {"xu_pct": 64.0}, {"xu_pct": 20.0},
    ),
    "the_inside_of_a_librarys_kernel": (
        "bank_conflicts", GPU_CASES["bank_conflicts"][0], {"hot_is_own": 0.0}, {"hot_is_own": 1.0},
    ),
    "wide_loads_at_the_rate_of_good_streams": (
        "dram_rate", {"traffic_ratio": 1.0, "bytes_per_load_request": 512.0},
        {"dram_pct": 79.5}, {"dram_pct": 78.0},
    ),
    "a_product_that_the_library_does": (
        "no_tensor_cores", MATRIX | {"flops_share": 0.3, "fma_pct": 20.0, "hot_share": 0.55},
        BY_LIBRARY, {},
    ),
    "a_product_that_dram_limits": (
        "no_tensor_cores", GPU_CASES["no_tensor_cores"][0], {"dram_pct": 80.0}, {},
    ),
    "a_small_product_on_tensor_cores": (
        "no_tensor_cores", MATRIX | {"flops_share": 0.02, "tensor_pct": 2.0},
        {"fma_pct": 1.0}, {"fma_pct": 40.0},
    ),
    "a_sum_in_fp64_that_dram_hides": (
        "fp64_arithmetic", {"fp64_share": 0.08, "fp64_pct": 6.0},
        {"dram_pct": 85.0, "busiest_pct": 88.0}, {},
    ),
    "a_stream_that_waits_for_shuffles": (
        "dram_rate", {"traffic_ratio": 1.0, "bytes_per_load_request": 512.0, "dram_pct": 70.0},
        {"memory_stalls": 0.12}, {"memory_stalls": 0.62},
    ),
    "fp64_products_on_tensor_cores": (
        "fp64_arithmetic", {"fp64_share": 0.23, "issue_pct": 35.0},
        {"fp64_pct": 7.7}, {"fp64_pct": 16.0},
    ),
    "spills_where_dram_leaves_nothing": (
        "register_spills", GPU_CASES["register_spills"][0], {"dram_pct": 92.0}, {"dram_pct": 20.0},
    ),
    "an_fp32_product_that_the_library_does": (
        "fp32_matrix", GPU_CASES["fp32_matrix"][0] | {"hot_share": 0.6}, BY_LIBRARY, {},
    ),
    "an_fp32_product_that_dram_limits": (
        "fp32_matrix", GPU_CASES["fp32_matrix"][0], {"dram_pct": 80.0}, {},
    ),
}  # fmt: skip
"""By what the profile shows: a rule, what both sides have, and what each has besides."""


@pytest.mark.parametrize(("rule", "both", "misleading", "genuine"), GATES.values(), ids=GATES)
def test_misleading_advice_is_not_given(
    rule: str, both: Figures, misleading: Figures, genuine: Figures
) -> None:
    assert rule not in [advice.rule for advice in advise(CALM | both | misleading)]
    assert rule in [advice.rule for advice in advise(CALM | both | genuine)]


def test_nothing_is_said_of_tensor_cores_where_their_rate_is_not_known() -> None:
    planted = CALM | GPU_CASES["no_tensor_cores"][0]
    assert advise(planted)[0].rule == "no_tensor_cores"
    del planted["flops_ceiling"]
    assert "no_tensor_cores" not in [advice.rule for advice in advise(planted)]


WORDS: dict[str, tuple[str, Figures, Figures, str, str]] = {
    "one_launch": (
        "launch_bound", {"busy_us": 40.0, "busy_share": 0.4}, {"launches": 4.0}, "host", "fuse",
    ),
    "a_product_on_fp64_tensor_cores": (
        "fp32_matrix", GPU_CASES["fp32_matrix"][0], {"fp64_tensor_pct": 64.0},
        "FMA pipe", "with the fp64 tensor cores 64 % busy",
    ),
    "a_rate_that_is_not_known": (
        "library_time", {"library_share": 0.8, "product_share": 0.7}, {"product_rate": 0.5},
        "libraries.", "50 % of the rate",
    ),
    "blocks_that_do_not_divide_among_the_sms": (
        "uneven_work", {"grid": 198.0, "blocks_per_sm": 1.5, "waves": 0.75, "uneven_share": 0.25},
        {"grid": 264.0, "blocks_per_sm": 2.0, "waves": 1.0},
        "whole number of blocks", "more to do than others",
    ),
    "wide_loads_at_the_limit_of_dram": (
        "dram_bound", GPU_CASES["dram_bound"][0],
        {"bytes_per_load_request": 128.0, "sectors_per_load": 1.0},
        "of the bandwidth, several independent loads", "16-byte",
    ),
    "wide_loads_of_only_what_must_move": (
        "dram_rate", GPU_CASES["dram_rate"][0],
        {"bytes_per_load_request": 128.0, "sectors_per_load": 4.0, "memory_weight": 0.1},
        "before it uses the first", "16 bytes",
    ),
}  # fmt: skip
"""By what is done already or does not hold: a rule, figures, what changes of them, and the words
that are in its advice before that only, and after it only."""


@pytest.mark.parametrize(("rule", "figures", "change", "said", "later"), WORDS.values(), ids=WORDS)
def test_what_is_done_already_is_not_advised(
    rule: str, figures: Figures, change: Figures, said: str, later: str
) -> None:
    before, after = advise(CALM | figures)[0], advise(CALM | figures | change)[0]
    assert before.rule == after.rule == rule
    words = [advice.evidence + advice.change for advice in (before, after)]
    assert [said in text for text in words] == [True, False]
    assert [later in text for text in words] == [False, True]


def test_bulk_copies_are_not_told_to_be_wider() -> None:
    copied = CALM | GPU_CASES["dram_rate"][0]
    del copied["bytes_per_load_request"]
    assert advise(copied)[0].rule == "dram_rate"
    assert "16 bytes" not in advise(copied)[0].change


PRAGMA = "#pragma omp parallel for\n"
SOURCES: dict[str, tuple[str, str, str]] = {
    "cp.async.bulk.shared::cluster.global": ("memory_latency", "(cp.async)", "more stages"),
    "__stcs(out + i, value);": ("dram_rate", "__stcs", "grid of whole waves."),
    "__cluster_dims__(8, 1, 1)": ("too_few_blocks", "Split", "Make clusters smaller"),
    f'{PRAGMA}extra_cflags=["-fopenmp"]': ("single_thread", "OpenMP", "lower the grain size, in"),
    PRAGMA: ("single_thread", "Spread", "Give -fopenmp to compiler and linker"),
}
"""By what the source has: a rule, what it says in vain, and what in its place."""


@pytest.mark.parametrize(("source", "told"), SOURCES.items(), ids=SOURCES)
def test_what_the_source_does_is_not_advised(source: str, told: tuple[str, str, str]) -> None:
    rule, vain, instead = told
    planted = CALM | GPU_CASES[rule][0] if rule in GPU_CASES else CPU_CALM | CPU_CASES[rule][0]
    changes = [advise(planted, source=s)[0].change for s in ("", f"// {source}", source)]
    assert changes[0] == changes[1]
    assert [vain in change for change in changes] == [True, True, False]
    assert [instead in change for change in changes] == [False, False, True]
