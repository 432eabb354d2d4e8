from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.collect.collected import Collected, CollectedKernel, KernelTrace, SourceLine, Work
from evaluator.collect.nsight.ncu_metrics import QUANTITIES
from evaluator.collect.nsight.raw_page import parse_raw
from evaluator.collect.nsight.scoreboard import MBARRIER
from evaluator.collect.nsight.source_page import waits_apart
from tests.tools.advice.test_diagnosis import WORK, cpu, diagnosed, gpu, kernel, text
from tools.advice.figures import figures
from tools.advice.rules import advise
from tools.profiling.profile_facts import Facts
from tools.profiling.profile_report import Bottleneck

DATA = Path(__file__).parents[2] / "data" / "ncu"


def of(**metrics: float) -> dict[str, float]:
    return figures(gpu(kernel(**metrics)))


def test_figures_of_the_call() -> None:
    known = figures(
        gpu(kernel("own_k", 60.0, launches=2), kernel("at::add", 20.0), latency_us=100.0)
    )
    assert known["launches"] == 3
    assert known["busy_share"] == pytest.approx(0.8)
    assert known["kernel_us"] == pytest.approx(80 / 3)
    assert known["hot_share"] == pytest.approx(0.6)
    assert known["library_share"] == pytest.approx(0.25)
    assert known["traffic_ratio"] == pytest.approx(2.0)
    assert known["sol_fraction"] == pytest.approx(0.2)
    assert known["matrix_intensity"] == 0.0
    # 30 + 30 + 20 us of 80: between two and three launches of one size.
    assert known["effective_launches"] == pytest.approx(64 / 22)


def test_ncu_may_take_longer_than_the_call() -> None:
    known = figures(gpu(kernel(time_us=150.0), latency_us=100.0))
    assert known["busy_share"] == 1.0
    assert known["hot_share"] == 1.0


def test_accesses_to_global_memory() -> None:
    known = of(
        load_sectors=3200.0, load_requests=100.0, load_bytes_per_sector=4.0,
        store_sectors=400.0, store_requests=100.0, store_bytes_per_sector=32.0,
    )  # fmt: skip
    assert known["sectors_per_load"] == 32
    assert known["load_efficiency"] == 0.125
    assert known["bytes_per_load_request"] == 128
    assert known["bytes_per_store_request"] == 128
    assert known["store_efficiency"] == 1.0
    assert known["load_sector_share"] == pytest.approx(8 / 9)


def test_bytes_read_again_are_measured_against_the_input() -> None:
    # 64 MB must move, of which this kernel stores 32 MB: it fetches the other half three times.
    known = of(l2_read_sectors=3e6, store_sectors=1e6, load_sectors=3e6)
    assert known["load_ratio"] == pytest.approx(3.0)
    assert "load_ratio" not in of(l2_read_sectors=3e6, store_sectors=2e6, load_sectors=3e6)


def test_asynchronous_copies_count_among_the_loads() -> None:
    # No load request, and an epilogue that fills half of each sector.
    both = {"load_sectors": 0.0, "store_bytes_per_sector": 16.0, "l1_pct": 85.0}
    copied = of(**both, store_sectors=2e5, store_requests=25e3, l2_read_sectors=4e6)
    assert copied["load_sector_share"] == pytest.approx(4.0 / 4.2)
    assert "uncoalesced_stores" not in [advice.rule for advice in advise(copied)]
    stored = of(**both, store_sectors=2e6, store_requests=25e4, l2_read_sectors=1e5)
    assert "uncoalesced_stores" in [advice.rule for advice in advise(stored)]


def test_shared_memory_is_no_reason_to_widen_loads() -> None:
    narrow = {"load_sectors": 4e6, "load_requests": 1e6, "load_bytes_per_sector": 32.0,
              "store_sectors": 1e6, "store_requests": 1e6, "store_bytes_per_sector": 32.0,
              "dram_pct": 20.0, "l2_pct": 20.0, "l1_pct": 58.0, "stall_wait": 40.0}  # fmt: skip
    scan, stream = of(**narrow, shared_pct=50.0), of(**narrow, shared_pct=2.0)
    assert scan["memory_weight"] == pytest.approx(0.2)
    assert stream["memory_weight"] == pytest.approx(0.58)
    assert "scalar_access" not in [advice.rule for advice in advise(scan)]
    assert "scalar_access" in [advice.rule for advice in advise(stream)]


def test_shuffles_are_no_accesses_to_shared_memory() -> None:
    shuffled = of(shared_pct=20.0, shared_wavefronts=132 * 1e4, sm_cycles_elapsed=5e5)
    assert shuffled["shared_access_pct"] == pytest.approx(2.0)
    twice = figures(gpu(kernel(launches=2, shared_wavefronts=132 * 2e4, sm_cycles_elapsed=5e5)))
    assert twice["shared_access_pct"] == pytest.approx(2.0)


def test_wavefronts_beat_the_count_of_conflicts() -> None:
    counted = {"shared_load_wavefronts": 330.0, "shared_load_conflicts": 310.0}
    assert of(**counted)["conflict_ways"] == pytest.approx(16.5)
    known = of(**counted, shared_wavefronts=300.0, shared_wavefronts_ideal=200.0)
    assert known["conflict_ways"] == pytest.approx(1.5)
    assert "conflict_ways" not in of(shared_wavefronts=0.0, shared_wavefronts_ideal=0.0)


def test_spills_and_arrays_are_told_apart() -> None:
    spilled = of(local_loads=60.0, local_stores=40.0, spill_requests=100.0, load_requests=100.0)
    assert spilled["local_share"] == pytest.approx(0.5)
    rules = [
        [advice.rule for advice in advise(known)]
        for known in (spilled, spilled | {"spill_requests": 0.0, "registers": 40.0})
    ]
    assert [names[0] for names in rules] == ["register_spills", "local_arrays"]


def test_spills_are_told_by_what_allows_more_registers() -> None:
    changes = {
        # The ninth warp is a third one on a quarter of an SM: 16384 / 96 registers, rounded down.
        (288.0, 168.0): "Use blocks of at most 256 threads: each may have 255.",
        (512.0, 128.0): "Use blocks of at most 384 threads: each may have 168.",
        (256.0, 32.0): "Allow 255, by __launch_bounds__(256) alone, without -maxrregcount.",
        (256.0, 255.0): "Keep fewer values alive: smaller tiles for each thread, less unrolling.",
    }
    for (block, registers), change in changes.items():
        spills = of(block=block, registers=registers, local_loads=60.0, spill_requests=60.0)
        advice = advise(spills)[0]
        assert (advice.rule, advice.change) == ("register_spills", change)
        assert ("3 warps of each share the 16384 reg" in advice.evidence) == (block == 288.0)


def test_what_spills_move_is_no_reason_to_coalesce() -> None:
    """Few loads use half of each sector; spilled values fill L2."""
    loads = {"load_sectors": 4e5, "load_requests": 1e5, "load_bytes_per_sector": 16.0,
             "store_sectors": 1e5, "store_requests": 25e3, "l2_write_sectors": 1e5}  # fmt: skip
    spills = {"local_loads": 1e7, "local_stores": 1e6, "l2_read_sectors": 4e7}
    told = [[a.rule for a in advise(known)] for known in (of(**loads), of(**loads, **spills))]
    assert ["uncoalesced_loads" in rules for rules in told] == [True, False]
    (advice,) = advise(of(**loads, **spills, spill_requests=11e6))
    assert advice.rule == "register_spills"
    assert "they are most of what goes through L2" in advice.evidence
    assert ", up to 100 % of it spills)" in text(gpu(kernel(**loads, **spills)))


def test_waits_for_bulk_copies_are_no_waits_for_loads() -> None:
    waits = {"file": "k.cu", "line": 9, "reason": "stall_long_scoreboard"}
    lines = [SourceLine(share=0.6, producer=MBARRIER, **waits), SourceLine(share=0.2, **waits)]
    sampled = {"stall_long_scoreboard": 8.0, "stall_short_scoreboard": 1.0}
    apart = sampled | {"stall_mbarrier": 6.0, "stall_long_scoreboard": 2.0}
    assert waits_apart(sampled, lines) == pytest.approx(apart)
    assert waits_apart(sampled, lines[1:]) == sampled
    copied = gpu(kernel(stall_mbarrier=6.0, stall_long_scoreboard=2.0))
    assert "wait for: bulk copies or other warps (mbarrier) 74 %" in text(copied)
    advice = advise(figures(copied))[0]
    assert (advice.rule, advice.figure) == ("memory_latency", "stall_mbarrier")
    assert "stages in the ring" in advice.change and "loads" not in advice.evidence


def test_tail_of_the_last_wave() -> None:
    assert of(waves=1.05)["tail_share"] == pytest.approx(0.475)
    assert of(waves=2.0)["tail_share"] == 0.0
    assert "tail_share" not in of(waves=0.4)


def test_stalls_are_shares_and_issuing_warps_are_none() -> None:
    known = of(stall_long_scoreboard=6.0, stall_barrier=2.0, stall_selected=1.0,
               stall_not_selected=5.0)  # fmt: skip
    assert known["stall_barrier_share"] == pytest.approx(0.25)
    assert known["memory_weight"] == pytest.approx(0.75)


def test_without_times_counts_still_tell_of_spills_and_doubles() -> None:
    metrics = {"registers": 255.0, "local_loads": 40.0, "local_stores": 40.0,
               "spill_requests": 80.0, "load_requests": 20.0, "fp64_thread_instructions": 30.0,
               "fp32_thread_instructions": 70.0}  # fmt: skip
    code = CollectedKernel(name="k", launches=1, time_us=0.0, metrics=metrics)
    facts = Facts(Collected(gpu=KernelTrace(kernels=(code,)), work=WORK), frozenset({"k"}), 99.0)
    known = figures(facts)
    assert "launches" not in known
    assert [advice.rule for advice in advise(known)] == ["register_spills", "fp64_arithmetic"]


def test_figures_of_a_cpu() -> None:
    known = figures(cpu(cpu_us=1000.0))
    assert known["busy_threads"] == pytest.approx(1.0)
    assert known["packed_share"] == pytest.approx(12 / 14)
    assert advise(known)[0].rule == "single_thread"


def test_real_export_of_an_h200() -> None:
    trace = parse_raw((DATA / "gelu_h200_raw.csv").read_text())
    work = Work(bytes=2 * 4 * 2**26, flops=0.0, bytes_per_s=4.2e12)
    facts = Facts(Collected(gpu=trace, work=work), frozenset({"gelu_k"}), 215.0, 128.0)
    known = figures(facts)
    assert known["uneven_share"] == pytest.approx(1 - 414_532.41 / 415_295)
    assert known["xu_pct"] == pytest.approx(15.21)
    assert known["sm_clock_hz"] == pytest.approx(1.965171e9)
    # Not 1.9, which the counter of the whole pipe reads for a kernel without a matrix product.
    assert known["tensor_pct"] == 0.0
    assert known["blocks_per_sm"] == pytest.approx(262_144 / 132)
    found = diagnosed(facts)
    assert (found.bottleneck, found.advice) == (Bottleneck.LATENCY, ())
    assert "DRAM 51 %" in found.headline
    # The driver's 1024 bytes are not shown.
    assert "60 % of the speed of light" in text(facts)
    assert "16 registers a thread\n" in text(facts)


VALUE = st.one_of(st.none(), st.just(0.0), st.floats(0.0, 1e12, allow_subnormal=False))


@given(st.dictionaries(st.sampled_from(sorted(QUANTITIES)), VALUE), st.booleans())
def test_whatever_a_chip_does_not_know_is_left_out(
    metrics: dict[str, float | None], own: bool
) -> None:
    found = CollectedKernel(name="k", launches=1, time_us=10.0, metrics=metrics)
    facts = Facts(Collected(gpu=KernelTrace(kernels=(found,)), work=WORK),
                  frozenset({"k"} if own else ()), 12.0, 4.0)  # fmt: skip
    advise(figures(facts), "k")
