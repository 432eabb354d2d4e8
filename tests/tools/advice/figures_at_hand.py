"""Figures of a kernel about which there is nothing to say, and what each rule needs to see."""

from __future__ import annotations

Figures = dict[str, float]

CALM: Figures = {
    "latency_us": 100.0, "whole_us": 100.0, "busy_us": 95.0, "busy_share": 0.95,
    "sol_fraction": 0.3, "launches": 1.0, "kernel_us": 95.0, "hot_us": 95.0, "hot_share": 0.95,
    "longest_share": 1.0, "effective_launches": 1.0, "library_share": 0.0,
    "traffic_ratio": 1.03, "matrix_intensity": 0.0,
    "intensity": 1.0, "flops_ceiling": 7e14,
    "dram_pct": 40.0, "l2_pct": 40.0, "l1_pct": 30.0, "sm_pct": 30.0,
    "issue_pct": 30.0, "fma_pct": 20.0, "alu_pct": 20.0, "xu_pct": 5.0, "fp64_pct": 0.0,
    "tensor_pct": 0.0, "shared_pct": 5.0, "busiest_pct": 40.0, "headroom": 0.6,
    "memory_weight": 0.5,
    "grid": 4096.0, "block": 256.0, "sm_count": 132.0, "waves": 16.0, "tail_share": 0.0,
    "blocks_per_sm": 31.0, "uneven_share": 0.01, "registers": 32.0, "shared_bytes": 0.0,
    "occupancy_pct": 80.0, "occupancy_limit_pct": 100.0, "limit_registers": 8.0,
    "limit_shared": 32.0, "limit_warps": 8.0, "limit_blocks": 32.0,
    "sectors_per_load": 16.0, "sectors_per_store": 16.0, "load_efficiency": 1.0,
    "store_efficiency": 1.0, "bytes_per_load_request": 512.0, "bytes_per_store_request": 512.0,
    "load_sectors": 1e6, "l2_read_sectors": 1e6, "load_sector_share": 0.5, "load_ratio": 1.0,
    "l1_hit_pct": 10.0, "l2_hit_pct": 50.0,
    "conflict_ways": 1.0, "local_requests": 0.0, "local_share": 0.0, "local_per_instruction": 0.0,
    "spill_requests": 0.0, "threads_per_instruction": 32.0,
    "fp32_share": 0.6, "fp64_share": 0.0, "integer_share": 0.4, "conversion_share": 0.0,
    "stall_long_scoreboard": 1.0, "stall_short_scoreboard": 0.5, "stall_barrier": 0.1,
    "stall_lg_throttle": 0.1, "stall_math_pipe": 0.5, "stall_mio_throttle": 0.1,
    "stall_wait": 1.0, "stall_no_instruction": 0.1, "stall_branch": 0.1,
    "stall_long_scoreboard_share": 0.3, "stall_short_scoreboard_share": 0.1,
    "stall_barrier_share": 0.03, "stall_lg_throttle_share": 0.03, "stall_math_pipe_share": 0.15,
    "stall_mio_throttle_share": 0.03, "stall_wait_share": 0.3, "stall_no_instruction_share": 0.03,
    "stall_branch_share": 0.03,
}  # fmt: skip
MATRIX: Figures = {"matrix_intensity": 300.0}

GPU_CASES: dict[str, tuple[Figures, Figures]] = {
    "launch_bound": (
        {"launches": 40.0, "kernel_us": 1.0, "busy_us": 40.0, "busy_share": 0.4},
        {"busy_share": 0.9, "kernel_us": 20.0},
    ),
    "unfused_kernels": (
        {"launches": 4.0, "effective_launches": 3.7, "traffic_ratio": 3.0},
        {"effective_launches": 1.1, "dram_pct": 30.0},
    ),
    "library_time": (
        {"library_share": 0.8, "launches": 3.0}, {"library_share": 0.2},
    ),
    "too_few_blocks": (
        {"grid": 16.0, "blocks_per_sm": 16 / 132, "waves": 0.03},
        {"grid": 264.0, "blocks_per_sm": 2.0, "waves": 1.0},
    ),
    "tail_wave": (
        {"waves": 1.05, "tail_share": 0.475}, {"waves": 8.4, "tail_share": 0.06},
    ),
    "small_blocks": ({"block": 32.0, "limit_registers": 64.0}, {"block": 128.0}),
    "uneven_work": ({"uneven_share": 0.4}, {"uneven_share": 0.1}),
    "redundant_passes": (
        {"traffic_ratio": 3.0, "dram_pct": 70.0}, {"traffic_ratio": 1.1, "dram_pct": 60.0},
    ),
    "dram_bound": (
        {"dram_pct": 70.0, "sol_fraction": 0.6, "traffic_ratio": 1.3}, {"dram_pct": 60.0},
    ),
    "dram_rate": ({"dram_pct": 70.0, "sol_fraction": 0.6}, {"traffic_ratio": 1.3}),
    "uncoalesced_loads": (
        {"sectors_per_load": 32.0, "load_efficiency": 0.125, "load_sector_share": 0.9},
        {"sectors_per_load": 4.0, "load_efficiency": 1.0},
    ),
    "uncoalesced_stores": (
        {"sectors_per_store": 32.0, "store_efficiency": 0.125, "load_sector_share": 0.1},
        {"store_efficiency": 0.9},
    ),
    "scalar_access": (
        {"bytes_per_load_request": 128.0, "sectors_per_load": 4.0},
        {"bytes_per_load_request": 256.0},
    ),
    "bank_conflicts": (
        {"conflict_ways": 16.0, "shared_pct": 80.0}, {"conflict_ways": 1.1},
    ),
    "register_spills": (
        {"local_requests": 1e6, "spill_requests": 1e6, "local_share": 0.6,
         "local_per_instruction": 0.2},
        {"local_share": 0.01},
    ),
    "local_arrays": (
        {"local_requests": 1e6, "local_share": 0.6, "registers": 30.0,
         "local_per_instruction": 0.2},
        {"local_requests": 0.0, "local_share": 0.0},
    ),
    "occupancy_registers": (
        {"occupancy_limit_pct": 18.0, "limit_registers": 2.0, "registers": 168.0},
        {"occupancy_limit_pct": 75.0},
    ),
    "barrier_wait": (
        {"stall_barrier": 6.0, "stall_barrier_share": 0.5}, {"stall_barrier_share": 0.1},
    ),
    "memory_latency": (
        {"stall_long_scoreboard": 9.0, "stall_long_scoreboard_share": 0.8},
        {"dram_pct": 70.0},
    ),
    "shared_memory_queue": (
        {"stall_mio_throttle": 4.0, "stall_mio_throttle_share": 0.4, "shared_load_wavefronts": 1e6},
        {"busiest_pct": 90.0},
    ),
    "no_tensor_cores": (MATRIX | {"flops_share": 0.03, "fma_pct": 50.0}, {"flops_ceiling": 6e13}),
    "fp64_arithmetic": ({"fp64_share": 0.3, "fp64_pct": 60.0}, {"fp64_share": 0.0,
                                                              "fp64_pct": 0.0}),
    "fp32_matrix": (
        MATRIX | {"flops_ceiling": 6e13, "flops_share": 0.5, "fma_pct": 55.0}, {"flops_share": 1.0},
    ),
}  # fmt: skip
"""By rule: what makes it hold, and what of that, changed, makes it silent."""

CPU_CALM: Figures = {
    "wall_us": 5000.0, "latency_us": 5000.0, "sol_fraction": 0.2, "threads": 8.0,
    "busy_threads": 7.5, "own_share": 0.95, "library_share": 0.02,
    "operators": 2.0, "page_faults": 10.0, "system_share": 0.01, "traffic_ratio": 1.0,
    "bandwidth_share": 0.2, "intensity": 0.5, "libm_calls": 0.0, "packed_share": 0.9,
    "widest_bits": 256.0,
}  # fmt: skip
CPU_CASES: dict[str, tuple[Figures, Figures]] = {
    "single_thread": ({"busy_threads": 1.0}, {"wall_us": 20.0}),
    "libm_calls": ({"libm_calls": 1.0}, {"libm_calls": 0.0}),
    "not_vectorised": ({"packed_share": 0.05}, {"packed_share": 0.5}),
    "narrow_vectors": ({"widest_bits": 128.0}, {"widest_bits": 512.0}),
    "temporaries": ({"traffic_ratio": 3.0}, {"bandwidth_share": 0.05}),
}
