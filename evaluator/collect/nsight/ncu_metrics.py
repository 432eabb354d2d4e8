"""Which metrics of Nsight Compute we ask for, under names of our own.

Each quantity lists its names in order of preference: chips differ (few since compute capability
7.0), and `ncu` drops a metric that it does not know without a word, so what is known is asked for.
"""

from __future__ import annotations

from typing import Literal

Kind = Literal["sum", "mean", "shape"]
"""How launches of one kernel combine: added up, averaged by time, or taken from the longest."""

_ELAPSED = ".avg.pct_of_peak_sustained_elapsed"
_ACTIVE = ".avg.pct_of_peak_sustained_active"
_SAMPLED = "smsp__pcsamp_"
_STALL = f"{_SAMPLED}warps_issue_stalled_{{}}"
_GLOBAL = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum"
_SHARED = "l1tex__data_{}_pipe_lsu_mem_shared_op_{}.sum"
_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared"
_PER_SECTOR = "smsp__sass_average_data_bytes_per_sector_mem_global_op_{}.ratio"
_TENSOR = ("type_hmma_hgmma_qgmma_imma_igmma_bmma_bgmma_cycles_active", "cycles_active")
_THREADS = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
_SM_PARTS = (
    "pipe_fma_cycles_active", "pipe_fmaheavy_cycles_active", "pipe_alu_cycles_active",
    "pipe_fp64_cycles_active", "inst_executed_pipe_xu", "inst_executed_pipe_lsu",
    "inst_executed_pipe_cbu_pred_on_any", "mio_pq_read_cycles_active",
    "mio_pq_write_cycles_active", "mio2rf_writeback_active", "inst_executed",
)  # fmt: skip

_L1_PARTS = ("data_pipe_lsu_wavefronts", "lsuin_requests", "m_l1tex2xbar_req_cycles_active")
_REASONS = {
    "long_scoreboard": ("long_scoreboard",), "short_scoreboard": ("short_scoreboard",),
    "barrier": ("barrier",), "lg_throttle": ("lg_throttle",), "math_pipe": ("math_pipe_throttle",),
    "mio_throttle": ("mio_throttle",), "wait": ("wait",), "branch": ("branch_resolving",),
    "membar": ("membar",), "no_instruction": ("no_instructions",), "drain": ("drain",),
    "not_selected": ("not_selected",), "selected": ("selected",), "constant": ("imc_miss",),
    "dispatch": ("dispatch_stall",), "sleeping": ("sleeping",), "tex_throttle": ("tex_throttle",),
    "tensor": ("gmma", "warpgroup_arrive"),
}  # fmt: skip

# What it costs: a chip counts a few things of one unit at a time, so ncu replays a kernel until
# all are had: 11 times on compute capability 9.0, each 0.05 s for a small kernel. Suffixes of one
# counter (.min, .avg, .max) share it; `launch__` costs nothing. Names with `sass` and `memory_` are
# counted by a patched copy of the kernel: all of them together take passes of their own. A
# throughput counts all parts of its unit: the SM's took 4 more passes, L1's 3.
QUANTITIES: dict[str, tuple[Kind, tuple[str, ...]]] = {
    "time_us": ("sum", ("gpu__time_duration.sum",)),
    "sm_clock_hz": ("mean", ("gpc__cycles_elapsed.avg.per_second",)),
    # throughput, per cent of peak
    "dram_pct": ("mean", (f"gpu__dram_throughput{_ELAPSED}",)),
    "l2_pct": ("mean", (f"lts__throughput{_ELAPSED}",)),
    "l1_pct": ("mean", tuple(f"l1tex__{part}{_ACTIVE}" for part in _L1_PARTS)),
    "sm_pct": ("mean", tuple(f"sm__{part}{_ELAPSED}" for part in _SM_PARTS)),
    "issue_pct": ("mean", (f"sm__inst_executed{_ELAPSED}",)),
    "fma_pct": ("mean", (f"sm__pipe_fma_cycles_active{_ELAPSED}",)),
    "alu_pct": ("mean", (f"sm__pipe_alu_cycles_active{_ELAPSED}",)),
    "xu_pct": ("mean", (f"sm__inst_executed_pipe_xu{_ELAPSED}",)),
    "fp64_pct": ("mean", (f"sm__pipe_fp64_cycles_active{_ELAPSED}",)),
    # On an H200 the second name reads 1.9 % for a kernel of plain fp32 arithmetic, the first 0.
    "tensor_pct": ("mean", tuple(f"sm__pipe_tensor_{name}{_ELAPSED}" for name in _TENSOR)),
    "fp64_tensor_pct": ("mean", (f"sm__pipe_tensor_op_dmma_cycles_active{_ELAPSED}",)),
    "shared_pct": ("mean", (f"{_WAVEFRONTS}{_ELAPSED}",)),
    # traffic
    "dram_read_bytes": ("sum", ("dram__bytes_read.sum",)),
    "dram_write_bytes": ("sum", ("dram__bytes_write.sum",)),
    "l2_hit_pct": ("mean", ("lts__t_sector_hit_rate.pct",)),
    "l2_read_sectors": ("sum", ("lts__t_sectors_srcunit_tex_op_read.sum",)),
    "l2_write_sectors": ("sum", ("lts__t_sectors_srcunit_tex_op_write.sum",)),
    "load_sectors": ("sum", (_GLOBAL.format("sectors", "ld"),)),
    "load_requests": ("sum", (_GLOBAL.format("requests", "ld"),)),
    "store_sectors": ("sum", (_GLOBAL.format("sectors", "st"),)),
    "store_requests": ("sum", (_GLOBAL.format("requests", "st"),)),
    # Bytes that threads asked for in each 32-byte sector that was fetched or written.
    "load_bytes_per_sector": ("mean", (_PER_SECTOR.format("ld"),)),
    "store_bytes_per_sector": ("mean", (_PER_SECTOR.format("st"),)),
    # shared memory: a wavefront is what its banks serve in one cycle
    "shared_load_conflicts": ("sum", (_SHARED.format("bank_conflicts", "ld"),)),
    "shared_store_conflicts": ("sum", (_SHARED.format("bank_conflicts", "st"),)),
    "shared_load_wavefronts": ("sum", (f"{_WAVEFRONTS}_op_ld.sum",)),
    "shared_store_wavefronts": ("sum", (f"{_WAVEFRONTS}_op_st.sum",)),
    "shared_wavefronts": ("sum", ("memory_l1_wavefronts_shared",)),
    "shared_wavefronts_ideal": ("sum", ("memory_l1_wavefronts_shared_ideal",)),
    # local memory: spilled registers, and arrays that are indexed at run time
    "local_loads": ("sum", ("smsp__inst_executed_op_local_ld.sum",)),
    "local_stores": ("sum", ("smsp__inst_executed_op_local_st.sum",)),
    # instructions, of warps unless the name says threads
    "instructions": ("sum", ("smsp__inst_executed.sum",)),
    "threads_per_instruction": ("mean", ("smsp__thread_inst_executed_per_inst_executed.ratio",)),
    "fp32_thread_instructions": ("sum", (_THREADS.format("fp32"),)),
    "fp64_thread_instructions": ("sum", (_THREADS.format("fp64"),)),
    "integer_thread_instructions": ("sum", (_THREADS.format("integer"),)),
    "conversion_thread_instructions": ("sum", (_THREADS.format("conversion"),)),
    # latency: warps for each instruction issued, and how many of them stalled, by reason: shares of
    # the samples, since counters of all reasons would take 4 more passes
    "warps_per_issue": ("mean", ("smsp__average_warp_latency_per_inst_issued.ratio",)),
    **{f"stall_{name}": ("mean", tuple(map(_STALL.format, of))) for name, of in _REASONS.items()},
    "occupancy_pct": ("mean", (f"sm__warps_active{_ACTIVE}",)),
    # balance over the SMs
    "sm_cycles_mean": ("mean", ("sm__cycles_active.avg",)),
    "sm_cycles_most": ("mean", ("sm__cycles_active.max",)),
    "sm_cycles_elapsed": ("mean", ("sm__cycles_elapsed.max",)),
    # launch
    "occupancy_limit_pct": ("shape", ("sm__maximum_warps_per_active_cycle_pct",)),
    "waves": ("shape", ("launch__waves_per_multiprocessor",)),
    "grid": ("shape", ("launch__grid_size",)),
    "block": ("shape", ("launch__block_size",)),
    "sm_count": ("shape", ("launch__sm_count",)),
    "registers": ("shape", ("launch__registers_per_thread",)),
    # Their sum is `shared_bytes`, the kernel's own: the driver takes 1024 bytes more of each block.
    "static_shared_bytes": ("shape", ("launch__shared_mem_per_block_static",)),
    "dynamic_shared_bytes": ("shape", ("launch__shared_mem_per_block_dynamic",)),
    "limit_registers": ("shape", ("launch__occupancy_limit_registers",)),
    "limit_shared": ("shape", ("launch__occupancy_limit_shared_mem",)),
    "limit_warps": ("shape", ("launch__occupancy_limit_warps",)),
    "limit_blocks": ("shape", ("launch__occupancy_limit_blocks",)),
}

_UNLISTED = ("launch__", _SAMPLED, "memory_", "sm__maximum_warps", "smsp__sass_")
"""Not counters of the chip: the list that ncu prints leaves them out."""

BUSIEST = frozenset({"l1_pct", "sm_pct"})
"""The largest of their metrics stands for these."""

SAMPLES = "group:smsp__pcsamp_warp_stall_reasons"
SOURCE = "SourceCounters"
"""The section that puts samples on lines of source: for their group alone ncu 2025.3 does not."""


def names(known: frozenset[str] | None = None) -> tuple[list[str], list[str]]:
    """Metrics to ask for, and quantities that cannot be had.

    `known` holds base names (before the first dot) that the chip knows; None asks for everything.
    """
    wanted: list[str] = []
    missing: list[str] = []
    for quantity, (_, alternatives) in QUANTITIES.items():
        listed = [name for name in alternatives if known is None or name.partition(".")[0] in known]
        # Each further alternative could cost a pass: the first that the chip lists is enough.
        usable = listed if known is None or quantity in BUSIEST else listed[:1]
        usable = usable or [name for name in alternatives if name.startswith(_UNLISTED)]
        # Samples come together.
        wanted += [name for name in usable if not name.startswith(_SAMPLED)]
        if not usable:
            missing.append(quantity)
    return list(dict.fromkeys(wanted)), missing
