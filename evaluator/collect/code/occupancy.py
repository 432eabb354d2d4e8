"""How many blocks of a kernel fit on a multiprocessor.

The rules are those of NVIDIA's occupancy calculator (part of Nsight Compute); the limits are those
of the CUDA C++ programming guide, "Compute Capabilities".
"""

from __future__ import annotations

from evaluator.hardware.published import REGISTERS_PER_SM, SHARED_MEMORY, THREADS_PER_SM

Capability = tuple[int, int]
_BLOCKS_PER_SM: dict[Capability, int] = {(7, 5): 16, (8, 6): 16, (8, 9): 24, (12, 0): 24}
"""32 elsewhere."""
_WARP = 32
_REGISTER_UNIT = 256
"""Registers are allocated to a warp in units of this size."""
_WARP_UNIT = 4
"""Warps are spread evenly over the four parts of a multiprocessor."""
_SHARED_UNIT = 128
RESERVED_SHARED = 1024
"""Of each block, for the driver, since compute capability 8.0."""
_BLOCKS = range(32, 1025, 32)


def blocks_per_sm(
    capability: Capability, *, registers: int, shared_bytes: int, block: int
) -> dict[str, int]:
    """Blocks of `block` threads that fit, by what limits them, as `ncu_metrics` names it.

    `registers` are those of a thread, `shared_bytes` those of a block, without
    what the driver reserves.
    """
    most = _BLOCKS_PER_SM.get(capability, 32)
    warps = -(-block // _WARP)
    per_warp = _rounded(max(1, registers) * _WARP, _REGISTER_UNIT)
    by_registers = REGISTERS_PER_SM // per_warp // _WARP_UNIT * _WARP_UNIT
    if capability >= (8, 0):
        shared_bytes += RESERVED_SHARED
    per_sm = SHARED_MEMORY.get(capability, (0, 0))[0]
    by_shared = per_sm // _rounded(shared_bytes, _SHARED_UNIT) if shared_bytes and per_sm else most
    return {
        "limit_registers": by_registers // warps,
        "limit_shared": by_shared,
        "limit_warps": THREADS_PER_SM.get(capability, 2048) // _WARP // warps,
        "limit_blocks": most,
    }


def occupancy_pct(capability: Capability, limits: dict[str, int], block: int) -> float:
    """Warps on a multiprocessor, per cent of the most it can hold."""
    held = min(limits.values()) * -(-block // _WARP)
    return 100.0 * held * _WARP / THREADS_PER_SM.get(capability, 2048)


def best_occupancy(
    capability: Capability, *, registers: int, shared_bytes: int
) -> tuple[float, dict[str, int]]:
    """The most that any size of block reaches, per cent, and the limits at that size."""
    found = {
        block: blocks_per_sm(
            capability, registers=registers, shared_bytes=shared_bytes, block=block
        )
        for block in _BLOCKS
    }
    best = max(found, key=lambda block: occupancy_pct(capability, found[block], block))
    return occupancy_pct(capability, found[best], best), found[best]


def _rounded(count: int, unit: int) -> int:
    return -(-count // unit) * unit
