"""Rules of advice about what keeps warps off an SM, and what those on it wait for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tools.advice.rule import AdviceRule, Figures, Found, multiplies
from tools.advice.thresholds import LIMITS
from tools.profiling.profile_facts import percent
from tools.profiling.profile_report import Bottleneck, Direction

UP, DOWN = Direction.UP, Direction.DOWN
_LIMITERS = {
    "limit_warps": "blocks",
    "limit_blocks": "blocks",
    "limit_registers": "registers",
    "limit_shared": "shared",
}
"""Of those that allow as few blocks, the first one is named: registers do not limit an SM that
holds the most blocks it can, and the driver takes shared memory for each block."""


def _limited_by(limiter: str, words: Callable[[Figures], str]) -> Callable[[Figures], Found | None]:
    def find(f: Figures) -> Found | None:
        possible = f["occupancy_limit_pct"]
        known = [name for name in _LIMITERS if name in f]
        fewest = min(known, key=lambda name: f[name], default="")
        if possible > LIMITS.occupancy_limit_pct or _LIMITERS.get(fewest) != limiter:
            return None
        # With little to wait for, few warps are enough; products live on large tiles.
        if f.get("busiest_pct", 0.0) >= LIMITS.busy_pct or multiplies(f):
            return None
        # Asynchronous copies are no loads, and the size of their buffers is what is in flight.
        if limiter == "shared" and f.get("load_sectors", 1.0) < 0.5 * f.get("l2_read_sectors", 0.0):
            return None
        return Found(
            f"{words(f)} let only {possible:.0f} % of the warps of an SM run at once, and no unit"
            " is busy.",
            (1.0 - possible / 100.0) * f.get("headroom", 1.0),
        )

    return find


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
_MIO = ("stall_mio_throttle", "stall_short_scoreboard")
_shared = _stall(_MIO, LIMITS.stall_share, "shared memory or special functions")
_shuffles = _stall(_MIO, LIMITS.stall_share, "shuffles, conversions or special functions")
_SHARED_ACCESSES = ("shared_load_wavefronts", "shared_store_wavefronts", "shared_wavefronts")


def _memory_latency(f: Figures) -> Found | None:
    # A DRAM that is busy makes all loads slow: more of them in flight change nothing.
    if f.get("dram_pct", 0.0) >= LIMITS.dram_pct or _waiting_bytes(f) >= LIMITS.waiting_bytes:
        return None
    return _loads(f)


def _waiting_bytes(f: Figures) -> float:
    """Of one load for each warp of an SM that waits for one; 0 where its size is not known."""
    warps = f.get("occupancy_pct", 0.0) / 100.0 * LIMITS.sm_threads / 32.0
    return warps * f["stall_long_scoreboard_share"] * f.get("bytes_per_load_request", 0.0)


def _accesses_shared_memory(f: Figures) -> bool:
    """Shuffles and special functions wait in the same queue, and the driver reserves some shared
    memory for every kernel: only accesses tell. Yes where they were not counted."""
    if "shared_access_pct" in f:
        return f["shared_access_pct"] >= LIMITS.shared_access_pct
    known = [f[name] for name in _SHARED_ACCESSES if name in f]
    return not known or sum(known) > 0


def _shared_memory_queue(f: Figures) -> Found | None:
    # Special functions wait in the same queue.
    if f.get("xu_pct", 0.0) > f.get("shared_access_pct", 100.0):
        return None
    return _shared(f) if _accesses_shared_memory(f) else None


def _shuffle_queue(f: Figures) -> Found | None:
    if _accesses_shared_memory(f):
        return None
    busy = f.get("shared_pct", 0.0)
    if busy < LIMITS.cache_advice_pct:
        return _shuffles(f)
    others = max(f.get(name, 0.0) for name in ("issue_pct", "dram_pct", "l2_pct", "alu_pct"))
    return Found(
        f"shuffles keep the unit of shared memory busy {busy:.0f} %, more than any other.",
        min(0.5, 1.0 - others / busy),
        "shared_pct",
    )


def _divergence(f: Figures) -> Found | None:
    active = f["threads_per_instruction"]
    block = max(1.0, f.get("block", 32.0))
    # Of 32, on average, those that the block fills.
    filled = block / -(-block // 32.0)
    if active >= LIMITS.active_threads * filled / 32.0:
        return None
    # One thread starts the copies for tensor cores, and these are not issue.
    fed = f.get("tensor_pct", 0.0) >= LIMITS.tensor_used_pct
    issue = max(f.get("issue_pct", 100.0), 0.0 if fed else f.get("sm_pct", 0.0))
    weight = min(1.0, issue / max(f.get("busiest_pct", issue), 1.0))
    # A branch that is waited for costs as well where nothing is busy.
    weight = max(weight, f.get("stall_branch_share", 0.0))
    return Found(
        f"{active:.0f} of 32 threads are active for an average instruction: the threads of a warp"
        " take different branches or loop counts.",
        (1.0 - active / 32.0) * weight,
    )


_WHEN_LIMITED = (
    "no matrix product; at most {occupancy_limit_pct:g} % of warps fit, no unit above"
    " {busy_pct:g} %, limit: "
)

LATENCY_RULES: tuple[AdviceRule, ...] = (
    AdviceRule(
        name="occupancy_registers",
        bottleneck=Bottleneck.OCCUPANCY,
        when=f"{_WHEN_LIMITED}registers",
        change="Use fewer registers a thread: smaller tiles, less unrolling, or"
        " __launch_bounds__(threads, blocks) with the number of blocks that should fit, as long as"
        " nothing spills.",
        watch=(("occupancy_limit_pct", UP), ("occupancy_pct", UP)),
        source="ncu TheoreticalOccupancy",
        find=_limited_by("registers", lambda f: f"{f['registers']:.0f} registers a thread"),
    ),
    AdviceRule(
        name="occupancy_shared",
        bottleneck=Bottleneck.OCCUPANCY,
        when=f"{_WHEN_LIMITED}shared memory, not filled by asynchronous copies",
        change="Use less shared memory a block: smaller or fewer tiles, narrower types, a buffer"
        " used twice; keep in registers what only one thread reads.",
        watch=(("occupancy_limit_pct", UP), ("occupancy_pct", UP)),
        source="ncu TheoreticalOccupancy",
        find=_limited_by(
            "shared", lambda f: f"{f['shared_bytes']:.0f} bytes of shared memory a block"
        ),
    ),
    AdviceRule(
        name="divergence",
        bottleneck=Bottleneck.LATENCY,
        when="fewer than {active_threads:g} of 32 threads active per instruction, or of as many as"
        " the block fills",
        change="Let all threads of a warp take the same branch: choose by warp or block instead of"
        " by thread, sort or group the work, compute both sides and select, and give each row a"
        " whole warp.",
        watch=(("threads_per_instruction", UP),),
        source="ncu ThreadDivergence; AKA N",
        find=_divergence,
    ),
    AdviceRule(
        name="barrier_wait",
        bottleneck=Bottleneck.LATENCY,
        when="{stall_share:.0%} of stalls at barriers, no unit above {latency_busy_pct:g} %, tensor"
        " pipe below {tensor_enough_pct:g} %",
        change="Synchronise less: reduce within warps by shuffles and meet once a block, let a"
        " warp own its row, use smaller blocks, or double-buffer tiles so that one barrier a step"
        " is enough.",
        watch=(("stall_barrier", DOWN),),
        source="AKA I; ncu CPIStall",
        find=_stall(["stall_barrier"], LIMITS.stall_share, "the rest of the block"),
    ),
    AdviceRule(
        name="memory_latency",
        bottleneck=Bottleneck.LATENCY,
        when="{memory_stall_share:.0%} of stalls on loads, DRAM below {dram_pct:g} %, no unit above"
        " {latency_busy_pct:g} %; the warps of an SM wait for less than {waiting_bytes:.2g} bytes",
        change="Have more loads in flight: let each thread issue two to eight independent loads"
        " before it uses the first (unroll, process several elements), or prefetch the next tile"
        " (cp.async) while this one is used.",
        watch=(("stall_long_scoreboard", DOWN), ("dram_pct", UP)),
        source="AKA E, M; ncu CPIStall",
        find=_memory_latency,
    ),
    AdviceRule(
        name="shared_memory_queue",
        bottleneck=Bottleneck.CACHE_BANDWIDTH,
        when="{stall_share:.0%} of stalls on shared memory or its queue; shared memory busy"
        " {shared_access_pct:g} %, and more than the XU pipe",
        change="Access shared memory less often and wider: float4 reads, values kept in registers"
        " over several steps (register tiles), warp shuffles in place of shared memory.",
        watch=(("stall_mio_throttle", DOWN), ("stall_short_scoreboard", DOWN)),
        source="AKA H; ncu CPIStall",
        find=_shared_memory_queue,
    ),
    AdviceRule(
        name="shuffle_queue",
        bottleneck=Bottleneck.LATENCY,
        when="few accesses to shared memory, and {stall_share:.0%} of stalls on that queue or its"
        " unit busy {cache_advice_pct:g} %",
        change="Shuffle less: let each thread combine several elements before the warp does,"
        " reduce fewer and larger groups, and use __reduce_add_sync for integers. Where there are"
        " no shuffles, call fewer special functions, and convert less.",
        watch=(
            ("stall_mio_throttle", DOWN),
            ("stall_short_scoreboard", DOWN),
            ("shared_pct", DOWN),
        ),
        find=_shuffle_queue,
    ),
)
