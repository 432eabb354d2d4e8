"""Which metrics of Nsight Compute we ask for, under names of our own.

Each quantity lists its names in order of preference: chips and versions differ, and `ncu` drops a
metric that it does not know without a word, so what is known is asked for first.
"""

from __future__ import annotations

from typing import Literal

Kind = Literal["sum", "mean", "shape"]
"""How launches of one kernel combine: added up, averaged by time, or taken from the longest."""

_ELAPSED = ".avg.pct_of_peak_sustained_elapsed"
_ACTIVE = ".avg.pct_of_peak_sustained_active"
_STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
_GLOBAL = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum"

QUANTITIES: dict[str, tuple[Kind, tuple[str, ...]]] = {
    "time_us": ("sum", ("gpu__time_duration.sum", "gpu__time_duration.avg")),
    # throughput, per cent of peak
    "dram_pct": ("mean", (f"gpu__dram_throughput{_ELAPSED}", f"dram__throughput{_ELAPSED}")),
    "l2_pct": ("mean", (f"lts__throughput{_ELAPSED}",)),
    "l1_pct": ("mean", (f"l1tex__throughput{_ACTIVE}",)),
    "memory_pct": ("mean", (f"gpu__compute_memory_throughput{_ELAPSED}",)),
    "sm_pct": ("mean", (f"sm__throughput{_ELAPSED}",)),
    "issue_pct": ("mean", (f"sm__inst_executed{_ELAPSED}", f"sm__issue_active{_ELAPSED}")),
    "fma_pct": (
        "mean",
        (f"sm__pipe_fma_cycles_active{_ELAPSED}", f"sm__inst_executed_pipe_fma{_ACTIVE}"),
    ),
    "alu_pct": ("mean", (f"sm__pipe_alu_cycles_active{_ELAPSED}",)),
    "xu_pct": ("mean", (f"sm__inst_executed_pipe_xu{_ELAPSED}",)),
    "fp64_pct": (
        "mean",
        (f"sm__pipe_fp64_cycles_active{_ELAPSED}", f"sm__pipe_fp64_cycles_active{_ACTIVE}"),
    ),
    "tensor_pct": (
        "mean",
        (f"sm__pipe_tensor_cycles_active{_ELAPSED}", f"sm__inst_executed_pipe_tensor{_ACTIVE}"),
    ),
    # traffic
    "dram_read_bytes": ("sum", ("dram__bytes_read.sum",)),
    "dram_write_bytes": ("sum", ("dram__bytes_write.sum",)),
    "l1_hit_pct": ("mean", ("l1tex__t_sector_hit_rate.pct",)),
    "l2_hit_pct": ("mean", ("lts__t_sector_hit_rate.pct",)),
    "load_sectors": ("sum", (_GLOBAL.format("sectors", "ld"),)),
    "load_requests": ("sum", (_GLOBAL.format("requests", "ld"),)),
    "store_sectors": ("sum", (_GLOBAL.format("sectors", "st"),)),
    "store_requests": ("sum", (_GLOBAL.format("requests", "st"),)),
    "spill_loads": (
        "sum",
        ("smsp__sass_inst_executed_op_local_ld.sum", "smsp__inst_executed_op_local_ld.sum"),
    ),
    # latency
    "stall_long_scoreboard": ("mean", (_STALL.format("long_scoreboard"),)),
    "stall_short_scoreboard": ("mean", (_STALL.format("short_scoreboard"),)),
    "stall_barrier": ("mean", (_STALL.format("barrier"),)),
    "stall_lg_throttle": ("mean", (_STALL.format("lg_throttle"),)),
    "stall_math_pipe": ("mean", (_STALL.format("math_pipe_throttle"),)),
    "stall_mio_throttle": ("mean", (_STALL.format("mio_throttle"),)),
    "stall_wait": ("mean", (_STALL.format("wait"),)),
    "occupancy_pct": ("mean", (f"sm__warps_active{_ACTIVE}",)),
    "threads_per_instruction": ("mean", ("smsp__thread_inst_executed_per_inst_executed.ratio",)),
    # launch
    "occupancy_limit_pct": ("shape", ("sm__maximum_warps_per_active_cycle_pct",)),
    "waves": ("shape", ("launch__waves_per_multiprocessor",)),
    "grid": ("shape", ("launch__grid_size",)),
    "block": ("shape", ("launch__block_size",)),
    "sm_count": ("shape", ("launch__sm_count", "device__attribute_multiprocessor_count")),
    "registers": ("shape", ("launch__registers_per_thread",)),
    "shared_bytes": (
        "shape",
        ("launch__shared_mem_per_block_allocated", "launch__shared_mem_per_block"),
    ),
    "limit_registers": ("shape", ("launch__occupancy_limit_registers",)),
    "limit_shared": ("shape", ("launch__occupancy_limit_shared_mem",)),
    "limit_warps": ("shape", ("launch__occupancy_limit_warps",)),
    "limit_blocks": ("shape", ("launch__occupancy_limit_blocks",)),
}

_UNLISTED = ("launch__", "device__", "sm__maximum_warps", "smsp__sass_")
"""Not counters of the chip: the list that ncu prints leaves them out."""

SECTIONS = ("SpeedOfLight", "LaunchStats", "Occupancy")
"""Their rules come with estimates of what could be gained."""


def names(known: frozenset[str] | None = None) -> tuple[list[str], list[str]]:
    """Metrics to ask for, and quantities that cannot be had.

    `known` holds base names (before the first dot) that the chip knows; None asks for everything.

    """
    wanted: list[str] = []
    missing: list[str] = []
    for quantity, (_, alternatives) in QUANTITIES.items():
        usable = [
            name
            for name in alternatives
            if known is None or name.partition(".")[0] in known or name.startswith(_UNLISTED)
        ]
        wanted += usable
        if not usable:
            missing.append(quantity)
    return wanted, missing
