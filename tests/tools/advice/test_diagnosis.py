from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest

from evaluator.collect.collected import (
    Collected,
    CollectedKernel,
    CollectedOperator,
    CpuTrace,
    DeviceTimeline,
    KernelTrace,
    LoopFacts,
    Work,
)
from tools.advice.diagnosis import Diagnosis, diagnose
from tools.advice.figures import figures
from tools.profile import _shares as shares
from tools.profiling.profile_facts import Facts
from tools.profiling.profile_report import Bottleneck, ProfilerTier
from tools.profiling.profile_summary import MAX_LINES, summary

WORK = Work(bytes=64e6, flops=0.0, bytes_per_s=4e12, flops_per_s=None)
CALM: dict[str, float | None] = {
    "dram_pct": 30.0,
    "l2_pct": 30.0,
    "l1_pct": 20.0,
    "sm_pct": 25.0,
    "fma_pct": 15.0,
    "grid": 4096.0,
    "block": 256.0,
    "waves": 4.0,
    "sm_count": 132.0,
    "registers": 32.0,
    "occupancy_pct": 80.0,
    "occupancy_limit_pct": 100.0,
    "limit_registers": 8.0,
    "limit_shared": 32.0,
    "limit_warps": 8.0,
    "limit_blocks": 32.0,
    "dram_read_bytes": 32e6,
    "dram_write_bytes": 32e6,
    "stall_long_scoreboard": 9.0,
    "stall_barrier": 0.1,
}


def kernel(
    name: str = "own_k", time_us: float = 90.0, launches: int = 1, **metrics: float
) -> CollectedKernel:
    return CollectedKernel(name=name, launches=launches, time_us=time_us, metrics=CALM | metrics)


def gpu(
    *kernels: CollectedKernel, latency_us: float = 100.0, bound_us: float | None = 20.0
) -> Facts:
    trace = KernelTrace(kernels=kernels)
    own = frozenset(k.name for k in kernels if not k.name.startswith("at::"))
    return Facts(Collected(gpu=trace, work=WORK), own, latency_us, bound_us)


def cpu(
    *,
    wall_us: float = 1000.0,
    cpu_us: float = 7600.0,
    busiest_us: float = 1000.0,
    own_us: float = 900.0,
    library_us: float = 50.0,
    allocated: int = 32_000_000,
    loops: LoopFacts | None = None,
    bytes_per_s: float = 200e9,
    bound_us: float = 320.0,
    transcendental: float = 8e6,
    system_share: float = 0.0,
    profiled_us: float | None = None,
) -> Facts:
    trace = CpuTrace(
        operators=(
            CollectedOperator(
                name="gelu", own=True, calls=1, time_us=own_us, allocated_bytes=allocated
            ),
            CollectedOperator(name="aten::add", own=False, calls=2, time_us=library_us),
        ),
        wall_us=wall_us,
        cpu_us=cpu_us,
        busiest_thread_us=busiest_us,
        profiled_us=wall_us if profiled_us is None else profiled_us,
        threads=8,
        page_faults=1000.0,
        system_share=system_share,
        output_bytes=32_000_000,
        loops=loops or LoopFacts(packed=12, scalar=2, widest_bits=256),
    )
    work = Work(
        bytes=64e6,
        flops=0.0,
        elementwise=16e6,
        transcendental=transcendental,
        bytes_per_s=bytes_per_s,
    )
    return Facts(Collected(cpu=trace, work=work), frozenset(), wall_us, bound_us)


SCALAR = LoopFacts(packed=0, scalar=9, widest_bits=0, calls=("expf",))
GPU_CASES: dict[Bottleneck, Callable[[], Facts]] = {
    Bottleneck.MEMORY_BANDWIDTH: lambda: gpu(kernel(dram_pct=91.0)),
    Bottleneck.CACHE_BANDWIDTH: lambda: gpu(kernel(l2_pct=93.0)),
    Bottleneck.COMPUTE: lambda: gpu(kernel(xu_pct=88.0, sm_pct=88.0)),
    Bottleneck.LATENCY: lambda: gpu(kernel()),
    Bottleneck.OCCUPANCY: lambda: gpu(kernel(occupancy_pct=22.0, occupancy_limit_pct=25.0,
                                             limit_registers=2.0)),
    Bottleneck.TOO_FEW_BLOCKS: lambda: gpu(kernel(grid=64.0, waves=0.06)),
    Bottleneck.LAUNCH_OVERHEAD: lambda: gpu(kernel(time_us=12.0, launches=4)),
    Bottleneck.LIBRARY: lambda: gpu(kernel(time_us=20.0), kernel("at::native::gemm", 75.0)),
    Bottleneck.REDUNDANT_TRAFFIC: lambda: gpu(kernel(dram_pct=85.0, dram_read_bytes=160e6)),
    Bottleneck.AT_THE_BOUND: lambda: gpu(kernel(dram_pct=93.0), bound_us=92.0),
    Bottleneck.UNKNOWN: lambda: Facts(
        Collected(gpu=KernelTrace(kernels=(CollectedKernel(name="k", launches=1, time_us=9.0),))),
        frozenset({"k"}),
    ),
}  # fmt: skip
CPU_CASES: dict[Bottleneck, Callable[[], Facts]] = {
    Bottleneck.SINGLE_THREAD: lambda: cpu(cpu_us=1000.0),
    Bottleneck.NOT_VECTORISED: lambda: cpu(loops=SCALAR),
    Bottleneck.MEMORY_BANDWIDTH: lambda: cpu(bytes_per_s=80e9),
    Bottleneck.REDUNDANT_TRAFFIC: lambda: cpu(allocated=96_000_000),
    Bottleneck.LIBRARY: lambda: cpu(own_us=100.0, library_us=800.0),
    Bottleneck.COMPUTE: cpu,
    Bottleneck.AT_THE_BOUND: lambda: cpu(bound_us=900.0),
    Bottleneck.UNKNOWN: lambda: cpu(
        wall_us=10.0,
        cpu_us=10.0,
        busiest_us=10.0,
        own_us=9.0,
        library_us=0.5,
        bytes_per_s=1e15,
        allocated=0,
        bound_us=1.0,
    ),
}


def diagnosed(facts: Facts) -> Diagnosis:
    return diagnose(figures(facts), facts.hot.name if facts.collected.gpu is not None else "")


def text(facts: Facts) -> str:
    tier = ProfilerTier.NCU if facts.collected.gpu is not None else ProfilerTier.CPU
    found = diagnosed(facts)
    return summary(found.bottleneck, found.headline, facts, shares(facts), tier=tier)


def test_every_bottleneck_has_a_case() -> None:
    assert {*GPU_CASES, *CPU_CASES} == set(Bottleneck)


@pytest.mark.parametrize("cases", [GPU_CASES, CPU_CASES])
def test_no_two_bottlenecks_read_the_same(cases: dict[Bottleneck, Callable[[], Facts]]) -> None:
    told = {code: text(make()).splitlines() for code, make in cases.items()}
    for code, lines in told.items():
        assert lines[0] == f"- bottleneck: {code}"
        assert len(lines) <= MAX_LINES
    for one, other in itertools.combinations(told, 2):
        assert told[one][1] != told[other][1], (one, other)


@pytest.mark.parametrize(
    ("facts", "both"),
    [
        (cpu(loops=SCALAR, profiled_us=1200.0), "took 1200.0 us, the timed one 1000.0 us"),
        (cpu(loops=SCALAR, profiled_us=2400.0), "took 2400.0 us, the timed one 1000.0 us"),
        (cpu(loops=SCALAR, own_us=600.0, profiled_us=700.0), "took 700.0 us, the timed one 1000.0"),
        (gpu(kernel(time_us=60.0)), "took 60.0 us, the timed one 100.0 us"),
        (gpu(kernel(time_us=98.0)), ""),
        (gpu(kernel(time_us=126.0)), "took 126.0 us, the timed one 100.0 us"),
    ],
)
def test_no_advice_rests_on_what_only_the_profiled_call_took(facts: Facts, both: str) -> None:
    assert both in text(facts) and ("timed one" in text(facts)) == bool(both)
    if facts.collected.cpu is not None:
        vectorise = any(advice.rule == "libm_calls" for advice in diagnosed(facts).advice)
        assert vectorise == (facts.excess_us == 0.0)


AGREED = {
    Bottleneck.LATENCY: "memory_latency",
    Bottleneck.OCCUPANCY: "occupancy_registers",
    Bottleneck.TOO_FEW_BLOCKS: "too_few_blocks",
    Bottleneck.LAUNCH_OVERHEAD: "launch_bound",
    Bottleneck.LIBRARY: "library_time",
    Bottleneck.REDUNDANT_TRAFFIC: "redundant_passes",
}


@pytest.mark.parametrize("expected", GPU_CASES)
def test_the_headline_is_that_of_the_first_advice(expected: Bottleneck) -> None:
    found = diagnosed(GPU_CASES[expected]())
    assert found.bottleneck is expected
    rules = [advice.rule for advice in found.advice]
    assert rules[:1] == [AGREED[expected]] if expected in AGREED else not rules
    if found.advice:
        assert found.headline == found.advice[0].evidence


@pytest.mark.parametrize("expected", CPU_CASES)
def test_cpu(expected: Bottleneck) -> None:
    assert diagnosed(CPU_CASES[expected]()).bottleneck is expected


@pytest.mark.parametrize(
    "l1, shared, unit",
    [(88.0, 82.0, "Shared memory"), (93.0, 74.0, "Shared memory"), (99.0, 0.0, "L1")],
)
def test_the_l1_is_called_shared_memory_where_that_is_what_it_is_busy_with(
    l1: float, shared: float, unit: str
) -> None:
    # Figures of planted kernels on an H200: a transposition's banks, a tiled and a naive product.
    finding = diagnosed(gpu(kernel(l1_pct=l1, shared_pct=shared)))
    assert finding.bottleneck is Bottleneck.CACHE_BANDWIDTH
    assert f"{unit} is busy" in finding.headline


def test_the_hottest_own_kernel_is_judged() -> None:
    fill = kernel("at::native::fill", 65.0, dram_read_bytes=0.0, dram_write_bytes=0.0, l2_pct=99.0)
    facts = gpu(kernel("own_k", 66.0, dram_pct=91.0), fill, latency_us=140.0)
    finding = diagnosed(facts)
    assert finding.bottleneck is Bottleneck.MEMORY_BANDWIDTH
    assert "own_k" in finding.headline


def test_many_tiny_launches_without_a_latency() -> None:
    facts = Facts(
        Collected(gpu=KernelTrace(kernels=(kernel(time_us=30.0, launches=12),))),
        frozenset({"own_k"}),
    )
    assert diagnosed(facts).bottleneck is Bottleneck.LAUNCH_OVERHEAD


@pytest.mark.parametrize(
    ("time_us", "expected"),
    # The second does not move all of the bytes, as a kernel that skips padding.
    [(20.0, Bottleneck.MEMORY_BANDWIDTH), (12.5, Bottleneck.UNKNOWN)],
)
def test_without_counters_the_bytes_over_the_time_tell_the_bandwidth(
    time_us: float, expected: Bottleneck
) -> None:
    unknown = {"occupancy_pct": 0.0}
    bare = CollectedKernel(name="own_k", launches=1, time_us=time_us, metrics=unknown)
    trace = KernelTrace(kernels=(bare,), span_us=time_us)
    facts = Facts(Collected(gpu=trace, work=WORK), frozenset({"own_k"}))
    assert diagnosed(facts).bottleneck is expected
    assert "occupancy" not in text(facts)


def test_little_arithmetic_on_all_threads_is_memory() -> None:
    finding = diagnosed(cpu(transcendental=0.0))
    assert finding.bottleneck is Bottleneck.MEMORY_BANDWIDTH
    assert "little arithmetic" in finding.headline


def test_mapping_fresh_memory_is_memory_whatever_the_arithmetic() -> None:
    finding = diagnosed(cpu(system_share=0.5))
    assert finding.bottleneck is Bottleneck.MEMORY_BANDWIDTH
    assert "50 % of the processor time" in finding.headline
    assert "1000 page faults" in finding.headline
    # Without a fault the system was busy with something else.
    without = diagnose(figures(cpu(system_share=0.5)) | {"page_faults": 0.0})
    assert without.bottleneck is Bottleneck.COMPUTE


def test_products_at_the_rate_of_the_library_are_left_to_it() -> None:
    slow = figures(CPU_CASES[Bottleneck.LIBRARY]()) | {"flops_share": 0.3}
    assert diagnose(slow).bottleneck is Bottleneck.LIBRARY
    assert "80 % of the time in PyTorch's own" in diagnose(slow).headline
    assert diagnose(slow | {"flops_share": 0.9}).bottleneck is not Bottleneck.LIBRARY


def test_temporaries_that_stay_in_the_cache_do_not_count() -> None:
    facts = cpu(allocated=96_000_000, bytes_per_s=1e12)
    assert diagnosed(facts).bottleneck is not Bottleneck.REDUNDANT_TRAFFIC


def test_short_calls_are_not_told_to_use_threads() -> None:
    facts = cpu(wall_us=30.0, cpu_us=30.0, busiest_us=30.0, own_us=25.0, library_us=1.0)
    assert diagnosed(facts).bottleneck is not Bottleneck.SINGLE_THREAD


def test_table_shows_the_top_four_and_the_rest() -> None:
    facts = gpu(*(kernel(f"k{n}", 50.0 - n, dram_pct=90.0) for n in range(7)))
    table = text(facts).split("| kernel |")[1].splitlines()
    assert [row.split("|")[1].strip() for row in table[2:]] == ["k0", "k1", "k2", "k3", "3 more"]


def test_a_gpu_profile_in_words() -> None:
    facts = gpu(kernel(
        fma_pct=55.0, shared_bytes=2048.0, occupancy_limit_pct=75.0, threads_per_instruction=16.0,
        stall_wait=2.0, stall_selected=5.0, stall_not_selected=7.0,
        l2_read_sectors=4e6, l2_write_sectors=1e6, load_sectors=3.2e6, load_requests=1e5,
        store_sectors=4e5, store_requests=1e5, shared_wavefronts=300.0,
        shared_wavefronts_ideal=200.0, local_loads=12.0, local_stores=3.0,
        fp32_thread_instructions=70.0, fp64_thread_instructions=30.0, sm_clock_hz=1.755e9,
        shared_pct=12.0,
    ))  # fmt: skip
    assert text(facts).splitlines()[2:] == [
        "- time: 100.0 us a call, the bound is 20.0 us: 20 % of the speed of light, at most 5.00x"
        " left to gain",
        "- the profiled call took 90.0 us, the timed one 100.0 us: shares are of the profiled call",
        "- own_k: the only kernel of the call, 90.0 us, 4096 blocks, 256 threads a block, 4.00"
        " waves, 32 registers a thread, 2048 bytes of shared memory a block",
        "- of peak: DRAM 30 %, L2 30 %, L1 20 %, the FMA pipe (fp32 multiply and add) 55 %, SM"
        " clock 1.75 GHz",
        "- occupancy: 80 % of at most 75 % (limit: registers per thread and threads per block)",
        "- stalled warps wait for: loads from global memory (long scoreboard) 81 %, the fixed"
        " latency of the instruction before (wait) 18 %",
        "- DRAM traffic: 64.0 MB, of which 64.0 MB must move (1.00 times), at 711.1 GB/s; a copy"
        " reaches 4000.0 GB/s here",
        # 64 MB must move: two million sectors of 32 bytes.
        "- L2 traffic: 128.0 MB read, 32.0 MB written (2.50 times what must move)",
        "- sectors per access of a warp: load 32.0, store 4.0 (coalesced: 4 with 4 bytes a thread,"
        " 16 with 16)",
        "- shared memory: busy 12 %, 300 wavefronts, 1.50 for each one needed (above 1: bank"
        " conflicts)",
        "- arithmetic instructions: fp32 70 %, fp64 30 %",
        "- local memory (spills, arrays indexed at run time): 12 loads",
        "- divergence: 16 of 32 threads active per instruction",
    ]


def test_the_second_kernel_has_its_figures_as_well() -> None:
    told = text(gpu(kernel(), kernel("second_k", 20.0, dram_pct=77.0), kernel("third_k", 9.0)))
    assert "\n- second_k: 4096 blocks, " in told and "- third_k" not in told
    assert "; of peak: DRAM 77 %, L2 30 %" in told


def test_memsets_and_gaps_beside_the_kernels() -> None:
    memset = CollectedKernel(name="Memset (Device)", launches=1, time_us=2.0)
    timeline = DeviceTimeline(
        kernels=2, kernels_us=34.0, others=(memset,), span_us=48.0, gaps_us=12.0,
        host_call="cudaMalloc", host_call_us=8.0,
    )  # fmt: skip
    facts = replace(gpu(kernel(time_us=38.0, launches=2), memset), own=frozenset({"own_k"}))
    with_timeline = replace(
        facts, collected=facts.collected.model_copy(update={"timeline": timeline})
    )
    told = text(with_timeline)
    assert (
        "- on the device in a call: 2 kernels 34.0 us, 1 Memset (Device) 2.0 us, gaps 12.0 us of"
        " 48.0 us, the host mostly in cudaMalloc\n"
    ) in told
    assert "| Memset (Device) | 5 % | 1 | 2.0 us | library |" in told
    alone = timeline.model_copy(update={"others": (), "gaps_us": 1.0})
    facts = replace(facts, collected=facts.collected.model_copy(update={"timeline": alone}))
    assert "on the device" not in text(facts)


def test_l2_traffic_is_reported_where_it_is_far_above_the_least() -> None:
    assert "L2 traffic" not in text(gpu(kernel(l2_read_sectors=1.1e6, l2_write_sectors=1e6)))
    reread = kernel(l2_read_sectors=4e6, l2_write_sectors=1e6)
    assert "L2 traffic" not in text(gpu(reread, kernel("other_k")))


def test_a_kernel_of_fewer_operations_is_not_told_to_stop() -> None:
    """Winograd: 93 % of the bound of a direct convolution, and no unit busy."""
    facts = gpu(kernel(dram_pct=39.0, issue_pct=64.0), bound_us=92.0)
    assert diagnosed(facts).bottleneck is not Bottleneck.AT_THE_BOUND
