"""Rules of advice about what keeps warps off an SM, and what those on it wait for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tools.advice.rule import DOWN, UP, AdviceRule, Figures, Found, multiplies
from tools.advice.thresholds import LIMITS
from tools.profiling.hot_kernel import REGISTERS, occupancy_limiter
from tools.profiling.profile_facts import percent
from tools.profiling.profile_report import Bottleneck


def _occupancy_registers(f: Figures) -> Found | None:
    possible = f["occupancy_limit_pct"]
    # Fewer gain nothing where something else allows no more blocks.
    if possible > LIMITS.occupancy_limit_pct or occupancy_limiter(f) != REGISTERS:
        return None
    # With little to wait for, few warps are enough; products live on large tiles.
    if f.get("busiest_pct", 0.0) >= LIMITS.busy_pct or multiplies(f):
        return None
    return Found(
        f"{f['registers']:.0f} registers a thread let only {possible:.0f} % of the warps of an SM"
        " run at once, and no unit is busy.",
        (1.0 - possible / 100.0) * f.get("headroom", 1.0),
    )


def _stall(reasons: Sequence[str], least: float, words: str) -> Callable[[Figures], Found | None]:
    """A rule that holds when these reasons together make a share of the stalls, and are many."""

    def find(f: Figures) -> Found | None:
        known = [reason for reason in reasons if f"{reason}_share" in f]
        share = sum(f[f"{reason}_share"] for reason in known)
        worst = max(known or reasons, key=lambda reason: f.get(f"{reason}_share", 0.0))
        many = sum(f[reason] for reason in known)
        if share < least or many < LIMITS.least_stall:
            return None
        if f["busiest_pct"] >= LIMITS.latency_busy_pct:
            return None
        # Warps that only copy wait at barriers, and for nothing that costs time.
        if f.get("tensor_pct", 0.0) >= LIMITS.tensor_enough_pct:
            return None
        return Found(
            f"{percent(share)} of the stalled warps wait for {words}, and no unit is above"
            f" {f['busiest_pct']:.0f} %.",
            share * f["headroom"],
            worst,
        )

    return find


_loads = _stall(["stall_long_scoreboard"], LIMITS.memory_stall_share, "loads")
_copies = _stall(["stall_mbarrier"], LIMITS.memory_stall_share, "bulk copies at an mbarrier")
_MIO = ("stall_mio_throttle", "stall_short_scoreboard")
_shared = _stall(_MIO, LIMITS.stall_share, "shared memory or special functions")
_MORE_STAGES = (
    "Have more bytes under way: more or larger stages in the ring, each refilled as soon as its"
    " last reader is done, by a warp that does nothing else."
)


def _memory_latency(f: Figures) -> Found | None:
    # A DRAM that is busy makes all loads slow: more of them in flight change nothing.
    if f.get("dram_pct", 0.0) >= LIMITS.dram_pct:
        return None
    if (found := _copies(f)) is not None:
        return replace(found, change=_MORE_STAGES)
    return None if _waiting_bytes(f) >= LIMITS.waiting_bytes else _loads(f)


def _waiting_bytes(f: Figures) -> float:
    """Of one load for each warp of an SM that waits for one; 0 where its size is not known."""
    warps = f.get("occupancy_pct", 0.0) / 100.0 * LIMITS.sm_threads / 32.0
    return warps * f["stall_long_scoreboard_share"] * f.get("bytes_per_load_request", 0.0)


def _shared_memory_queue(f: Figures) -> Found | None:
    """Shuffles and special functions wait in the same queue: it is accesses that tell, and where
    they were not counted, the waits alone."""
    accesses = f.get("shared_access_pct", 100.0)
    if accesses < LIMITS.shared_access_pct or f.get("xu_pct", 0.0) > accesses:
        return None
    return _shared(f)


LATENCY_RULES: tuple[AdviceRule, ...] = (
    AdviceRule(
        name="occupancy_registers",
        bottleneck=Bottleneck.OCCUPANCY,
        change="Use fewer registers a thread: smaller tiles, less unrolling, or"
        " __launch_bounds__(threads, blocks) with the number of blocks that should fit, as long as"
        " nothing spills.",
        done="used fewer registers",
        watch=(("occupancy_limit_pct", UP), ("occupancy_pct", UP)),
        find=_occupancy_registers,
    ),
    AdviceRule(
        name="barrier_wait",
        bottleneck=Bottleneck.LATENCY,
        change="Synchronise less: reduce within warps by shuffles and meet once a block, let a"
        " warp own its row, use smaller blocks, or double-buffer tiles so that one barrier a step"
        " is enough.",
        done="waited less at barriers",
        watch=(("stall_barrier", DOWN),),
        find=_stall(["stall_barrier"], LIMITS.stall_share, "the rest of the block"),
    ),
    AdviceRule(
        name="memory_latency",
        bottleneck=Bottleneck.LATENCY,
        change="Have more loads in flight: let each thread issue two to eight independent loads"
        " before it uses the first (unroll, process several elements), or prefetch the next tile"
        " (cp.async) while this one is used.",
        done="hid more of the latency of loads",
        watch=(("stall_long_scoreboard", DOWN), ("stall_mbarrier", DOWN), ("dram_pct", UP)),
        find=_memory_latency,
    ),
    AdviceRule(
        name="shared_memory_queue",
        bottleneck=Bottleneck.CACHE_BANDWIDTH,
        change="Access shared memory less often and wider: float4 reads, values kept in registers"
        " over several steps (register tiles), warp shuffles in place of shared memory.",
        done="used shared memory less",
        watch=(("stall_mio_throttle", DOWN), ("stall_short_scoreboard", DOWN)),
        find=_shared_memory_queue,
    ),
)
