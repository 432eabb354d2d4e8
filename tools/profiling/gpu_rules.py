"""Rules for a GPU: the first one that holds names what limits a candidate."""

from __future__ import annotations

from tools.profiling.finding import LIMITS, Finding, Rule, at_the_bound
from tools.profiling.profile_facts import Facts, byte_words, count_words, percent
from tools.profiling.profile_report import Bottleneck


def _launch_overhead(facts: Facts) -> Finding | None:
    trace = facts.gpu
    busy, launches = trace.busy_us, trace.launches
    if not launches:
        # Only the code was looked at: nothing is known of times.
        return None
    whole = max(facts.latency_us or 0.0, trace.span_us or 0.0)
    if whole and busy / whole < LIMITS.idle_device:
        return Finding(
            Bottleneck.LAUNCH_OVERHEAD,
            f"Kernels run for {busy:.1f} us of the {whole:.1f} us that a call takes: launching"
            f" {count_words(launches, 'kernel')} and the gaps around them cost the rest.",
        )
    if launches >= LIMITS.many_launches and busy / launches < LIMITS.tiny_kernel_us:
        return Finding(
            Bottleneck.LAUNCH_OVERHEAD,
            f"A call launches {launches} kernels of {busy / launches:.1f} us on average: launching"
            " costs about as much as running them.",
        )
    return None


def _library_gpu(facts: Facts) -> Finding | None:
    trace = facts.gpu
    foreign = [kernel for kernel in trace.kernels if kernel.name not in facts.own]
    share = sum(kernel.time_us for kernel in foreign) / trace.busy_us if trace.busy_us else 0.0
    if not foreign or share < LIMITS.library:
        return None
    longest = max(foreign, key=lambda kernel: kernel.time_us)
    return Finding(
        Bottleneck.LIBRARY,
        f"{percent(share)} of the device time is spent in kernels of PyTorch or its libraries (the"
        f" longest: {longest.name}), not in the candidate's own.",
    )


def _redundant_gpu(facts: Facts) -> Finding | None:
    traffic, dram = facts.traffic, _mean(facts, "dram_pct")
    if traffic is None or dram is None or dram < LIMITS.traffic_dram_pct:
        return None
    moved, must = traffic
    if moved / must < LIMITS.extra_traffic:
        return None
    return Finding(
        Bottleneck.REDUNDANT_TRAFFIC,
        f"It moves {byte_words(moved)} through DRAM where {byte_words(must)} must move"
        f" ({moved / must:.1f} times as much): data is read or written more than once.",
    )


def _memory_gpu(facts: Facts) -> Finding | None:
    dram = facts.metric("dram_pct")
    if dram is not None:
        if dram < LIMITS.dram_pct:
            return None
        return Finding(
            Bottleneck.MEMORY_BANDWIDTH,
            f"DRAM runs at {dram:.0f} % of its peak while {facts.hot.name} runs: the bandwidth of"
            " device memory limits it.",
        )
    implied = facts.implied_bandwidth(facts.gpu.busy_us)
    if implied is None or implied < LIMITS.implied_bandwidth:
        return None
    return Finding(
        Bottleneck.MEMORY_BANDWIDTH,
        f"The bytes that must move, over the time of the kernels, are {percent(implied)} of the"
        " bandwidth measured on this device: device memory limits it.",
    )


PIPES = {
    "fma_pct": "the FMA pipe (fp32 multiply and add)",
    "alu_pct": "the ALU pipe (integers, comparisons, logic)",
    "xu_pct": "the XU pipe (exp, log, sin, reciprocal, square root)",
    "fp64_pct": "the FP64 pipe (look for double constants)",
    "tensor_pct": "the tensor cores",
    "issue_pct": "instruction issue",
    "sm_pct": "the SM",
}
"""Units of an SM in words, by the names of metrics."""


def _compute_gpu(facts: Facts) -> Finding | None:
    name, busiest = busiest_pipe(facts)
    if busiest is not None:
        if busiest < LIMITS.compute_pct:
            return None
        return Finding(
            Bottleneck.COMPUTE,
            f"{name[0].upper()}{name[1:]} is busy {busiest:.0f} % of the time in {facts.hot.name}:"
            " arithmetic limits it, not memory.",
        )
    implied = facts.implied_flops(facts.gpu.busy_us)
    if implied is None or implied < LIMITS.implied_bandwidth:
        return None
    return Finding(
        Bottleneck.COMPUTE,
        f"The operations that must be done, over the time of the kernels, are {percent(implied)} of"
        " the rate measured on this device: arithmetic limits it.",
    )


def busiest_pipe(facts: Facts) -> tuple[str, float | None]:
    """The busiest unit of the SM in the hottest kernel, in words, and its per cent of peak."""
    known = {name: value for name in PIPES if (value := facts.metric(name)) is not None}
    if not known:
        return "", None
    # `sm_pct` is the maximum of its parts: the part says more, where it is among ours.
    top = max(known.values())
    name = next(name for name in PIPES if name in known and known[name] > top - 1.0)
    return PIPES[name], top


def _cache(facts: Facts) -> Finding | None:
    levels = {"L2": facts.metric("l2_pct"), "L1": facts.metric("l1_pct")}
    known = {name: value for name, value in levels.items() if value is not None}
    if not known or max(known.values()) < LIMITS.cache_pct:
        return None
    name = max(known, key=lambda level: known[level])
    shared = facts.metric("shared_pct") or 0.0
    if name == "L1" and shared >= known[name] / 2:
        # Shared memory is the same unit, and what it does counts as the L1's.
        return Finding(
            Bottleneck.CACHE_BANDWIDTH,
            f"Shared memory is busy {shared:.0f} % of the time in {facts.hot.name}, while DRAM is"
            " not: the same data is read from it too often, or by lanes that meet in one bank.",
        )
    return Finding(
        Bottleneck.CACHE_BANDWIDTH,
        f"The {name} cache is busy {known[name]:.0f} % of the time in {facts.hot.name}, while DRAM"
        " is not: the same data is fetched through the caches too often, or in pieces too small.",
    )


def _too_few_blocks(facts: Facts) -> Finding | None:
    grid, sms, waves = facts.metric("grid"), facts.metric("sm_count"), facts.metric("waves")
    if grid is None or sms is None:
        return None
    if grid >= sms and (waves is None or waves >= LIMITS.few_waves):
        return None
    filled = f", {waves:.2f} of a full wave" if waves is not None else ""
    return Finding(
        Bottleneck.TOO_FEW_BLOCKS,
        f"{facts.hot.name} launches {count_words(int(grid), 'block')} for {sms:.0f} SMs{filled}:"
        " part of the device stands idle.",
    )


def _occupancy(facts: Facts) -> Finding | None:
    reached, possible = facts.metric("occupancy_pct"), facts.metric("occupancy_limit_pct")
    low = reached is not None and reached < LIMITS.occupancy_pct
    limited = possible is not None and possible < LIMITS.occupancy_limit_pct
    if not (low or limited):
        return None
    parts = [f"{reached:.0f} % of the warps that an SM can hold are active" if reached else ""]
    if possible is not None:
        parts.append(f"at most {possible:.0f} % can be, limited by {occupancy_limiter(facts)}")
    return Finding(
        Bottleneck.OCCUPANCY,
        f"In {facts.hot.name} {' and '.join(part for part in parts if part)}: too few warps to"
        " hide latency.",
    )


def occupancy_limiter(facts: Facts) -> str:
    """What keeps more blocks of the hottest kernel off an SM."""
    allowed = {
        "registers per thread": facts.metric("limit_registers"),
        "shared memory per block": facts.metric("limit_shared"),
        "threads per block": facts.metric("limit_warps"),
        "blocks per SM (blocks are small)": facts.metric("limit_blocks"),
    }
    known = {name: value for name, value in allowed.items() if value is not None}
    return min(known, key=lambda name: known[name]) if known else "a limit that is not known"


def _latency(facts: Facts) -> Finding | None:
    dram = facts.metric("dram_pct")
    if dram is None:
        return None
    stalls = stall_reasons(facts)
    waits = f"; warps mostly wait for {stalls[0][0]}" if stalls else ""
    _, busiest = busiest_pipe(facts)
    unit = f", no unit of the SM above {busiest:.0f} %" if busiest is not None else ""
    return Finding(
        Bottleneck.LATENCY,
        f"Nothing is saturated in {facts.hot.name} (DRAM {dram:.0f} %{unit}){waits}: each thread"
        " has too little work in flight to hide latency.",
    )


STALL_WORDS = {
    "stall_long_scoreboard": "loads from global memory (long scoreboard)",
    "stall_short_scoreboard": "shared memory, shuffles or special functions (short scoreboard)",
    "stall_barrier": "barriers such as __syncthreads (barrier)",
    "stall_lg_throttle": "the queue of global memory instructions (LG throttle)",
    "stall_math_pipe": "a busy arithmetic pipe (math pipe throttle)",
    "stall_mio_throttle": "the queue of shared memory, shuffles and special functions"
    " (MIO throttle)",
    "stall_wait": "the fixed latency of the instruction before (wait)",
}
"""What warps wait for, by the names of metrics; in brackets what Nsight Compute calls it."""


def stall_reasons(facts: Facts) -> list[tuple[str, float]]:
    """Why warps of the hottest kernel wait, in words, with warps stalled per issue; worst first."""
    known = [
        (words, value)
        for name, words in STALL_WORDS.items()
        if (value := facts.metric(name)) is not None and value >= 0.5
    ]
    return sorted(known, key=lambda pair: -pair[1])


def _mean(facts: Facts, name: str) -> float | None:
    """A metric over all kernels that have it, weighted by time."""
    pairs = [
        (value, kernel.time_us)
        for kernel in facts.gpu.kernels
        if (value := kernel.metrics.get(name)) is not None
    ]
    weight = sum(time_us for _, time_us in pairs)
    return sum(value * time_us for value, time_us in pairs) / weight if weight else None


GPU_RULES: tuple[Rule, ...] = (
    at_the_bound,
    _launch_overhead,
    _library_gpu,
    _redundant_gpu,
    _memory_gpu,
    _compute_gpu,
    _cache,
    _too_few_blocks,
    _occupancy,
    _latency,
)
