"""Rules of advice about what warps wait for. Most of these are symptoms: causes explain them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tools.advice.rule import AdviceRule, Figures, Found
from tools.advice.thresholds import LIMITS
from tools.profiling.advice import Direction
from tools.profiling.bottleneck import Bottleneck
from tools.profiling.profile_facts import percent

UP, DOWN = Direction.UP, Direction.DOWN


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
            share * f["spare"],
            worst,
        )

    return find


_loads = _stall(["stall_long_scoreboard"], LIMITS.memory_stall_share, "loads")
_MIO = ("stall_mio_throttle", "stall_short_scoreboard")
_shared = _stall(_MIO, LIMITS.stall_share, "shared memory or special functions")
_shuffles = _stall(_MIO, LIMITS.stall_share, "shuffles, conversions or special functions")
_chain = _stall(["stall_wait"], LIMITS.memory_stall_share, "the result of the instruction before")
_queue = _stall(
    ["stall_lg_throttle", "stall_tex_throttle"],
    LIMITS.stall_share,
    "room in the queue of global memory instructions",
)
_fetches = _stall(
    ["stall_no_instruction", "stall_constant"],
    LIMITS.fetch_share,
    "instructions or constants to be fetched",
)
_WIDTHS = ("bytes_per_load_request", "bytes_per_store_request")
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


def _dependency_chain(f: Figures) -> Found | None:
    # Another warp issues while one waits for its last instruction.
    return _chain(f) if f.get("eligible_warps", 0.0) < LIMITS.eligible_warps else None


def _memory_queue(f: Figures) -> Found | None:
    # The queue of wide accesses is full because many bytes are under way.
    widths = [f[name] for name in _WIDTHS if name in f]
    return None if widths and min(widths) >= LIMITS.wide_bytes else _queue(f)


def _instruction_fetch(f: Figures) -> Found | None:
    # Each launch fetches its code anew: that is most of what a short kernel waits for.
    launch_us = f.get("hot_us", float("inf")) / max(1.0, f.get("hot_launches", 1.0))
    return _fetches(f) if launch_us >= LIMITS.tiny_kernel_us else None


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


LATENCY_RULES: tuple[AdviceRule, ...] = (
    AdviceRule(
        name="divergence",
        bottleneck=Bottleneck.LATENCY,
        when="fewer than {active_threads:g} of 32 threads active per instruction, or of as many as"
        " the block fills",
        change="Let all threads of a warp take the same branch: choose by warp or block instead of"
        " by thread, sort or group the work, compute both sides and select, and give each row a"
        " whole warp.",
        watch=(("threads_per_instruction", UP),),
        model="idle threads, times issue over the busiest unit",
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
        model="stalls times headroom",
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
        model="stalls times headroom",
        source="AKA E, M; ncu CPIStall",
        find=_memory_latency,
    ),
    AdviceRule(
        name="dependency_chain",
        bottleneck=Bottleneck.LATENCY,
        when="{memory_stall_share:.0%} of stalls on the previous instruction, no unit above"
        " {latency_busy_pct:g} %, under {eligible_warps:g} warp that could issue",
        change="Break the chain: keep two to four independent accumulators and add them at the"
        " end, work on several elements at once, unroll; or keep more warps active.",
        watch=(("stall_wait", DOWN), ("stall_short_scoreboard", DOWN)),
        model="stalls times headroom",
        source="ncu CPIStall; own threshold",
        find=_dependency_chain,
    ),
    AdviceRule(
        name="memory_queue",
        bottleneck=Bottleneck.LATENCY,
        when="{stall_share:.0%} of stalls on the global memory queue; loads or stores under"
        " {wide_bytes:g} bytes",
        change="Issue fewer, wider accesses to memory (16 bytes a thread), and spread them between"
        " arithmetic.",
        watch=(("stall_lg_throttle", DOWN), ("stall_tex_throttle", DOWN)),
        model="stalls times headroom",
        source="ncu CPIStall",
        find=_memory_queue,
    ),
    AdviceRule(
        name="shared_memory_queue",
        bottleneck=Bottleneck.CACHE_BANDWIDTH,
        when="{stall_share:.0%} of stalls on shared memory or its queue; shared memory busy"
        " {shared_access_pct:g} %, and more than the XU pipe",
        change="Access shared memory less often and wider: float4 reads, values kept in registers"
        " over several steps (register tiles), warp shuffles in place of shared memory.",
        watch=(("stall_mio_throttle", DOWN), ("stall_short_scoreboard", DOWN)),
        model="stalls times headroom",
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
        model="stalls times headroom, or distance to the next busiest unit, at most half",
        find=_shuffle_queue,
    ),
    AdviceRule(
        name="instruction_fetch",
        bottleneck=Bottleneck.LATENCY,
        when="{fetch_share:.0%} of stalls on instructions or constants, in a kernel of"
        " {tiny_kernel_us:g} us or more",
        change="Make the code smaller: unroll less (#pragma unroll 4), fewer template variants in"
        " one kernel, no large switch; read tables of constants by one address for a whole warp.",
        watch=(("stall_no_instruction", DOWN), ("stall_constant", DOWN)),
        model="stalls times headroom",
        source="ncu CPIStall; own threshold",
        find=_instruction_fetch,
    ),
)
