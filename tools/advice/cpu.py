"""Rules of advice for candidates that run on a CPU."""

from __future__ import annotations

from tools.advice.rule import DOWN, UP, AdviceRule, Figures, Found
from tools.advice.thresholds import LIMITS
from tools.profiling.profile_facts import count_words, percent
from tools.profiling.profile_report import Bottleneck


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


def _beyond_memory(f: Figures) -> float:
    """What memory leaves: the best that faster arithmetic can gain."""
    return max(0.0, 1.0 - f.get("bandwidth_share", 0.0))


CPU_ADVICE: tuple[AdviceRule, ...] = (
    AdviceRule(
        name="single_thread",
        bottleneck=Bottleneck.SINGLE_THREAD,
        change="Spread the outer loop over all threads: at::parallel_for or OpenMP, either with"
        " -fopenmp for compiler and linker, in chunks large enough to repay waking a thread.",
        done="spread the work over threads",
        watch=(("busy_threads", UP),),
        find=_single_thread,
    ),
    AdviceRule(
        name="libm_calls",
        bottleneck=Bottleneck.NOT_VECTORISED,
        change="Write exp, tanh and the like as polynomials over vectors (at::vec::Vectorized, or"
        " intrinsics), or compile with -O3 -march=native -ffast-math so that libmvec is used.",
        done="took out calls of libm",
        watch=(("libm_calls", DOWN), ("packed_share", UP)),
        find=_libm_calls,
    ),
    AdviceRule(
        name="not_vectorised",
        bottleneck=Bottleneck.NOT_VECTORISED,
        change="Use flat loops over contiguous __restrict__ pointers with -O3 -march=native"
        " -ffast-math, without branches or function calls inside; or write the vector code.",
        done="vectorised the loops",
        watch=(("packed_share", UP),),
        find=_not_vectorised,
    ),
    AdviceRule(
        name="narrow_vectors",
        bottleneck=Bottleneck.NOT_VECTORISED,
        change="Compile with -march=native (and -mprefer-vector-width=512 where the CPU has it), or"
        " use at::vec::Vectorized.",
        done="used wider vectors",
        watch=(("widest_bits", UP),),
        find=_narrow_vectors,
    ),
    AdviceRule(
        name="temporaries",
        bottleneck=Bottleneck.REDUNDANT_TRAFFIC,
        change="Fuse the steps into one loop that reads each element once and writes it once; work"
        " in blocks that stay in the cache, and allocate nothing but the output.",
        done="took out temporaries",
        watch=(("traffic_ratio", DOWN),),
        find=_temporaries,
    ),
)
