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
_SHARED_ACCESSES = ("shared_load_wavefronts", "shared_store_wavefronts", "shared_wavefronts")


def _memory_latency(f: Figures) -> Found | None:
    # A DRAM that is busy makes all loads slow: more of them in flight change nothing.
    return _loads(f) if f.get("dram_pct", 0.0) < LIMITS.dram_pct else None


def _accesses_shared_memory(f: Figures) -> bool:
    """Shuffles and special functions wait in the same queue, and the driver reserves some shared
    memory for every kernel: only accesses tell. Yes where they were not counted."""
    known = [f[name] for name in _SHARED_ACCESSES if name in f]
    return not known or sum(known) > 0


def _shared_memory_queue(f: Figures) -> Found | None:
    return _shared(f) if _accesses_shared_memory(f) else None


def _shuffle_queue(f: Figures) -> Found | None:
    return None if _accesses_shared_memory(f) else _shuffles(f)


def _divergence(f: Figures) -> Found | None:
    active = f["threads_per_instruction"]
    if active >= LIMITS.active_threads:
        return None
    issue = max(f.get("issue_pct", 100.0), f.get("sm_pct", 0.0))
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
        when="fewer than {active_threads:g} of 32 threads active per instruction",
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
        when="{stall_share:.0%} of stalls at barriers, no unit above {latency_busy_pct:g} %",
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
        " {latency_busy_pct:g} %",
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
        " {latency_busy_pct:g} %",
        change="Break the chain: keep two to four independent accumulators and add them at the"
        " end, work on several elements at once, unroll; or keep more warps active.",
        watch=(("stall_wait", DOWN), ("stall_short_scoreboard", DOWN)),
        model="stalls times headroom",
        source="ncu CPIStall; own threshold",
        find=_stall(
            ["stall_wait"],
            LIMITS.memory_stall_share,
            "the result of the instruction before",
        ),
    ),
    AdviceRule(
        name="memory_queue",
        bottleneck=Bottleneck.LATENCY,
        when="{stall_share:.0%} of stalls on the global memory queue",
        change="Issue fewer, wider accesses to memory (16 bytes a thread), and spread them between"
        " arithmetic.",
        watch=(("stall_lg_throttle", DOWN), ("stall_tex_throttle", DOWN)),
        model="stalls times headroom",
        source="ncu CPIStall",
        find=_stall(
            ["stall_lg_throttle", "stall_tex_throttle"],
            LIMITS.stall_share,
            "room in the queue of global memory instructions",
        ),
    ),
    AdviceRule(
        name="shared_memory_queue",
        bottleneck=Bottleneck.CACHE_BANDWIDTH,
        when="{stall_share:.0%} of stalls on shared memory or its queue",
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
        when="{stall_share:.0%} of stalls on that queue, and no access to shared memory",
        change="Shuffle less: let each thread combine several elements before the warp does,"
        " reduce fewer and larger groups, and use __reduce_add_sync for integers.",
        watch=(("stall_mio_throttle", DOWN), ("stall_short_scoreboard", DOWN)),
        model="stalls times headroom",
        find=_shuffle_queue,
    ),
    AdviceRule(
        name="instruction_fetch",
        bottleneck=Bottleneck.LATENCY,
        when="{fetch_share:.0%} of stalls on instructions or constants",
        change="Make the code smaller: unroll less (#pragma unroll 4), fewer template variants in"
        " one kernel, no large switch; read tables of constants by one address for a whole warp.",
        watch=(("stall_no_instruction", DOWN), ("stall_constant", DOWN)),
        model="stalls times headroom",
        source="ncu CPIStall; own threshold",
        find=_stall(
            ["stall_no_instruction", "stall_constant"],
            LIMITS.fetch_share,
            "instructions or constants to be fetched",
        ),
    ),
)
