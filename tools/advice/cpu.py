"""Rules of advice for candidates that run on a CPU."""

from __future__ import annotations

from tools.advice.matrix_product import has_product
from tools.advice.rule import AdviceRule, Figures, Found
from tools.advice.thresholds import LIMITS
from tools.profiling.advice import Direction
from tools.profiling.bottleneck import Bottleneck
from tools.profiling.profile_facts import count_words, percent

UP, DOWN = Direction.UP, Direction.DOWN
_PAGE_BYTES = 4096.0


def _single_thread(f: Figures) -> Found | None:
    busy, threads = f["busy_threads"], f["threads"]
    if threads < 2 or f["wall_us"] < LIMITS.threadable_us or busy >= LIMITS.busy_threads * threads:
        return None
    return Found(
        f"{busy:.1f} of {threads:.0f} threads share the work.",
        (1.0 - busy / threads) * max(f["own_share"], f["library_share"]),
    )


def _libm_calls(f: Figures) -> Found | None:
    if f["libm_calls"] < 1:
        return None
    return Found(
        f"inner loops call {count_words(int(f['libm_calls']), 'function')} of the mathematical"
        " library once for each element, which keeps them scalar.",
        f["own_share"] * LIMITS.libm_gain,
    )


def _not_vectorised(f: Figures) -> Found | None:
    packed = f["packed_share"]
    if packed >= LIMITS.packed:
        return None
    lanes = LIMITS.simd_bits / 32.0
    return Found(
        f"{percent(1 - packed)} of the floating-point instructions in inner loops work on one"
        " element.",
        (1.0 - packed) * (1.0 - 1.0 / lanes) * f["own_share"] * _beyond_memory(f),
    )


def _narrow_vectors(f: Figures) -> Found | None:
    widest = f["widest_bits"]
    if not 0 < widest < LIMITS.simd_bits:
        return None
    return Found(
        f"vector instructions are {widest:.0f} bits wide where {LIMITS.simd_bits:.0f} are common.",
        (1.0 - widest / LIMITS.simd_bits) * f["own_share"] * _beyond_memory(f),
    )


def _temporaries(f: Figures) -> Found | None:
    ratio = f["traffic_ratio"]
    # Small temporaries stay in the caches: only traffic that shows in the time counts.
    shows = f["system_share"] >= LIMITS.system_share or f.get("bandwidth_share", 0.0) * ratio >= 0.5
    if ratio < LIMITS.extra_traffic or not shows:
        return None
    return Found(
        f"temporaries make it move about {ratio:.1f} times the bytes that must move.",
        1.0 - 1.0 / ratio,
    )


def _page_faults(f: Figures) -> Found | None:
    share, faults = f["system_share"], f["page_faults"]
    if share < LIMITS.fresh_memory or faults < LIMITS.many_faults:
        return None
    is_outputs = f.get(
        "traffic_ratio", LIMITS.extra_traffic
    ) < LIMITS.least_traffic and faults * _PAGE_BYTES <= f.get("must_bytes", 0.0)
    return Found(
        f"{faults:.0f} page faults a call take {percent(share)} of the processor time: memory that"
        " is allocated anew is mapped page by page.",
        share,
        # No temporaries, and no more pages than inputs and outputs have.
        change="These are hardly more than the outputs' own pages: let each thread be the first to"
        " write its part of them, so that all threads map."
        if is_outputs
        else "",
    )


def _python_glue(f: Figures) -> Found | None:
    glue = f["glue_share"]
    if glue < LIMITS.glue or f["wall_us"] > 1000.0 or f["operators"] <= 1:
        return None
    return Found(f"Python and dispatch around the work take {percent(glue)} of the call.", glue)


def _library_operators(f: Figures) -> Found | None:
    share = f["library_share"]
    # Products that run at the measured rate are left to the library.
    if share < LIMITS.library or f.get("flops_share", 0.0) >= LIMITS.product_rate:
        return None
    return Found(
        f"{f['operators']:.0f} operators a call, and {percent(share)} of the time in PyTorch's"
        " own.",
        share * LIMITS.unfused_gain,
    )


def _memory_bound(f: Figures) -> Found | None:
    reached = f["bandwidth_share"]
    if reached < LIMITS.cpu_bandwidth or f["busy_threads"] < LIMITS.busy_threads * f["threads"]:
        return None
    return Found(
        f"the bytes that must move, over the time, are {percent(reached)} of the copy bandwidth"
        " measured here.",
        max(0.0, 1.0 - reached),
    )


def _busy_arithmetic(f: Figures) -> Found | None:
    if f["intensity"] < LIMITS.intensity or f["wall_us"] < LIMITS.threadable_us or has_product(f):
        return None
    if f["busy_threads"] < LIMITS.busy_threads * f["threads"] or f["packed_share"] < LIMITS.packed:
        return None
    return Found(
        f"vectorised code on all threads runs at {percent(f['bandwidth_share'])} of the copy"
        " bandwidth: arithmetic limits it.",
        0.25 * f["own_share"] * _beyond_memory(f),
    )


def _branch_misses(f: Figures) -> Found | None:
    cost = LIMITS.branch_miss_cycles * f["branch_misses_per_cycle"]
    if cost < LIMITS.miss_cost:
        return None
    return Found(
        f"{percent(f['branch_miss_share'])} of the branches are guessed wrongly, which costs about"
        f" {percent(min(1.0, cost))} of the cycles.",
        min(1.0, cost) * f["own_share"],
    )


def _cache_lines(f: Figures) -> Found | None:
    ratio, cost = f["cache_lines_ratio"], LIMITS.l1_miss_cycles * f["l1_misses_per_cycle"]
    if ratio < LIMITS.extra_lines or cost < LIMITS.miss_cost or f["cycle_instructions"] > 1.0:
        return None
    return Found(
        f"cache lines of {ratio:.1f} times the bytes that must move are fetched into L1, at"
        f" {f['cycle_instructions']:.1f} instructions a cycle.",
        min(1.0, cost) * (1.0 - 1.0 / ratio) * f["own_share"],
    )


def _beyond_memory(f: Figures) -> float:
    """What memory leaves: the best that faster arithmetic can gain."""
    return max(0.0, 1.0 - f.get("bandwidth_share", 0.0))


CPU_ADVICE: tuple[AdviceRule, ...] = (
    AdviceRule(
        name="single_thread",
        bottleneck=Bottleneck.SINGLE_THREAD,
        scope="call",
        when="under {busy_threads:.0%} of threads busy in a call of {threadable_us:g} us or more",
        change="Spread the outer loop over all threads: at::parallel_for, or OpenMP with -fopenmp,"
        " in chunks large enough to repay waking a thread.",
        watch=(("busy_threads", UP),),
        model="1 - busy / all threads",
        find=_single_thread,
    ),
    AdviceRule(
        name="libm_calls",
        bottleneck=Bottleneck.NOT_VECTORISED,
        scope="call",
        when="inner loops call libm",
        change="Write exp, tanh and the like as polynomials over vectors (at::vec::Vectorized, or"
        " intrinsics), or compile with -O3 -march=native -ffast-math so that libmvec is used.",
        watch=(("libm_calls", DOWN), ("packed_share", UP)),
        model="{libm_gain:.0%} of the time in own code",
        source="own model, assumed share",
        find=_libm_calls,
    ),
    AdviceRule(
        name="not_vectorised",
        bottleneck=Bottleneck.NOT_VECTORISED,
        scope="call",
        when="under {packed:.0%} packed instructions in inner loops",
        change="Use flat loops over contiguous __restrict__ pointers with -O3 -march=native"
        " -ffast-math, without branches or function calls inside; or write the vector code.",
        watch=(("packed_share", UP),),
        model="scalar share, times savings of eight lanes, times memory headroom",
        find=_not_vectorised,
    ),
    AdviceRule(
        name="narrow_vectors",
        bottleneck=Bottleneck.NOT_VECTORISED,
        scope="call",
        when="widest vector instructions below {simd_bits:g} bits",
        change="Compile with -march=native (and -mprefer-vector-width=512 where the CPU has it), or"
        " use at::vec::Vectorized.",
        watch=(("widest_bits", UP),),
        model="missing width times memory headroom",
        find=_narrow_vectors,
    ),
    AdviceRule(
        name="temporaries",
        bottleneck=Bottleneck.REDUNDANT_TRAFFIC,
        scope="call",
        when="estimated traffic {extra_traffic} times the minimum, visible in the time",
        change="Fuse the steps into one loop that reads each element once and writes it once; work"
        " in blocks that stay in the cache, and allocate nothing but the output.",
        watch=(("traffic_ratio", DOWN),),
        model="excess traffic",
        source="own model: one write and one read per temporary",
        find=_temporaries,
    ),
    AdviceRule(
        name="page_faults",
        bottleneck=Bottleneck.MEMORY_BANDWIDTH,
        scope="call",
        when="{fresh_memory:.0%} of processor time maps memory, {many_faults:g} page faults per"
        " call or more",
        change="Allocate nothing but the outputs, and write them in place; keep scratch buffers"
        " small, and on each thread's own stack.",
        watch=(("page_faults", DOWN), ("system_share", DOWN)),
        model="that share",
        find=_page_faults,
    ),
    AdviceRule(
        name="python_glue",
        bottleneck=Bottleneck.LAUNCH_OVERHEAD,
        scope="call",
        when="{glue:.0%} of a call of at most 1 ms outside operators and own functions, several of"
        " them",
        change="Make one call of your own out of many; take views, checks and conversions out of"
        " forward, and pass the tensors as they are.",
        watch=(("glue_share", DOWN),),
        model="that share",
        find=_python_glue,
    ),
    AdviceRule(
        name="library_operators",
        bottleneck=Bottleneck.LIBRARY,
        scope="call",
        when="{library:.0%} of the time in PyTorch's operators, no matrix product at"
        " {product_rate:.0%} of the measured rate",
        change="Fuse the elementwise operators and reductions into one function of your own; leave"
        " matrix products to the library and fuse what follows them.",
        watch=(("library_share", DOWN), ("operators", DOWN)),
        model="half of that share",
        find=_library_operators,
    ),
    AdviceRule(
        name="memory_bound",
        bottleneck=Bottleneck.MEMORY_BANDWIDTH,
        scope="call",
        when="{cpu_bandwidth:.0%} of copy bandwidth or more, on all threads",
        change="Read and write each element once, in order; split the work into contiguous chunks"
        " for each thread, and write large outputs past the caches (streaming stores).",
        watch=(("bandwidth_share", UP),),
        model="1 - share of bandwidth",
        find=_memory_bound,
    ),
    AdviceRule(
        name="busy_arithmetic",
        bottleneck=Bottleneck.COMPUTE,
        scope="call",
        when="no matrix product; vectorised, on all threads, {intensity} operations per byte or"
        " more",
        change="Do less arithmetic for each element: cheaper polynomials, divisions hoisted or"
        " replaced by a reciprocal, several independent sums.",
        watch=(("bandwidth_share", UP),),
        model="a quarter of memory headroom",
        find=_busy_arithmetic,
    ),
    # These two need the processor's own counters, and are silent where these can't be read.
    AdviceRule(
        name="branch_misses",
        bottleneck=Bottleneck.COMPUTE,
        scope="call",
        when="mispredicted branches cost {miss_cost:.0%} of cycles, at {branch_miss_cycles:g}"
        " cycles each",
        change="Take branches on data out of the inner loop: std::min and std::max, a select"
        " (c ? a : b) of two values that are both at hand, masks, or one pass for each case.",
        watch=(("branch_misses_per_cycle", DOWN), ("cycle_instructions", UP)),
        model="that share",
        source="own model, assumed cost; untested with real counters",
        find=_branch_misses,
    ),
    AdviceRule(
        name="cache_lines",
        bottleneck=Bottleneck.MEMORY_BANDWIDTH,
        scope="call",
        when="lines fetched into L1 are {extra_lines:g} times the minimum bytes, at most 1"
        " instruction per cycle",
        change="Walk memory in its order: the loop over the last dimension innermost; where data is"
        " used again, work in blocks that stay in L1 (a few KiB), and copy columns into a buffer.",
        watch=(("cache_lines_ratio", DOWN), ("cycle_instructions", UP)),
        model="miss cycles, at {l1_miss_cycles:g} each, times needless share",
        source="own model, assumed cost; untested with real counters",
        find=_cache_lines,
    ),
)
