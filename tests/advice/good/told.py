"""What the advice of a rule tells a writer to do, in the plain claims that labels are made of."""

from __future__ import annotations

from collections.abc import Mapping

from tests.advice.good.claim import Claim
from tools.profiling.advice import Advice

TOLD: Mapping[str, frozenset[Claim]] = {
    "launch_bound": frozenset({Claim.FEWER_LAUNCHES, Claim.FUSE}),
    "unfused_kernels": frozenset({Claim.FUSE}),
    "library_time": frozenset({Claim.LEAVE_THE_LIBRARY, Claim.FUSE}),
    "too_few_blocks": frozenset({Claim.MORE_BLOCKS}),
    "tail_wave": frozenset({Claim.BALANCE_WORK}),
    "small_blocks": frozenset({Claim.MORE_OCCUPANCY}),
    "uneven_work": frozenset({Claim.BALANCE_WORK}),
    "redundant_passes": frozenset({Claim.MOVE_FEWER_BYTES}),
    "dram_bound": frozenset({Claim.MOVE_FEWER_BYTES}),
    "dram_rate": frozenset({Claim.MORE_LOADS_IN_FLIGHT}),
    "poor_l2_reuse": frozenset({Claim.MORE_CACHE_REUSE}),
    "poor_l1_reuse": frozenset({Claim.MORE_CACHE_REUSE, Claim.USE_SHARED_MEMORY}),
    "cache_bandwidth": frozenset({Claim.MORE_CACHE_REUSE, Claim.TILE_IN_REGISTERS}),
    "uncoalesced_loads": frozenset({Claim.COALESCE}),
    "uncoalesced_stores": frozenset({Claim.COALESCE}),
    "scalar_access": frozenset({Claim.WIDEN_ACCESSES}),
    "bank_conflicts": frozenset({Claim.AVOID_BANK_CONFLICTS}),
    "atomics_contention": frozenset({Claim.AVOID_ATOMICS}),
    "register_spills": frozenset({Claim.AVOID_SPILLS}),
    "local_arrays": frozenset({Claim.AVOID_SPILLS}),
    "occupancy_registers": frozenset({Claim.MORE_OCCUPANCY}),
    "occupancy_shared": frozenset({Claim.MORE_OCCUPANCY}),
    "occupancy_blocks": frozenset({Claim.MORE_OCCUPANCY}),
    "divergence": frozenset({Claim.AVOID_DIVERGENCE}),
    "barrier_wait": frozenset({Claim.FEWER_BARRIERS}),
    "memory_latency": frozenset({Claim.MORE_LOADS_IN_FLIGHT}),
    "dependency_chain": frozenset({Claim.SHORTEN_DEPENDENCIES}),
    "memory_queue": frozenset({Claim.WIDEN_ACCESSES}),
    "shared_memory_queue": frozenset({Claim.USE_SHUFFLES, Claim.TILE_IN_REGISTERS}),
    "shuffle_queue": frozenset({Claim.TILE_IN_REGISTERS}),
    "instruction_fetch": frozenset({Claim.LESS_ARITHMETIC}),
    "no_tensor_cores": frozenset({Claim.USE_TENSOR_CORES}),
    "idle_tensor_cores": frozenset({Claim.USE_TENSOR_CORES}),
    "fp64_arithmetic": frozenset({Claim.AVOID_FP64}),
    "special_functions": frozenset({Claim.LESS_ARITHMETIC}),
    "integer_arithmetic": frozenset({Claim.FEWER_INDEX_INSTRUCTIONS}),
    "fp32_matrix": frozenset({Claim.TILE_IN_REGISTERS, Claim.USE_THE_LIBRARY}),
    "busy_fma": frozenset({Claim.LESS_ARITHMETIC, Claim.LOWER_PIPE_USE}),
}
"""By rule; a reader of the advice made it, who knew the labels."""

_OTHERWISE: Mapping[tuple[str, str], frozenset[Claim]] = {
    ("library_time", "Write this operator"): frozenset({Claim.LEAVE_THE_LIBRARY}),
    ("library_time", "Do the rest"): frozenset({Claim.FUSE}),
    ("fp32_matrix", "The tiles are large"): frozenset({Claim.USE_THE_LIBRARY}),
    ("fp32_matrix", "Load the next tile"): frozenset(
        {
            Claim.MORE_LOADS_IN_FLIGHT,
            Claim.COALESCE,
        }
    ),
}
"""What a rule tells where its advice begins with other words."""


def claims(advice: Advice) -> frozenset[Claim]:
    """What one piece of advice tells a writer to do."""
    for (rule, beginning), told in _OTHERWISE.items():
        if advice.rule == rule and advice.change.startswith(beginning):
            return told
    return TOLD[advice.rule]
