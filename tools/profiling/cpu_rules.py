"""Rules for a CPU: the first one that holds names what limits a candidate."""

from __future__ import annotations

from evaluator.collect.collected import CpuTrace
from tools.profiling.finding import LIMITS, Finding, Rule, at_the_bound
from tools.profiling.profile_facts import Facts, byte_words, percent
from tools.profiling.profile_report import Bottleneck


def _library_cpu(facts: Facts) -> Finding | None:
    library, _, _ = cpu_shares(facts.cpu)
    if library < LIMITS.library:
        return None
    operators = [operator for operator in facts.cpu.operators if not operator.own]
    longest = max(operators, key=lambda operator: operator.time_us)
    return Finding(
        Bottleneck.LIBRARY,
        f"{percent(library)} of the call is spent in PyTorch's own operators (the longest:"
        f" {longest.name}), not in the candidate's code.",
    )


def _glue(facts: Facts) -> Finding | None:
    library, own, glue = cpu_shares(facts.cpu)
    if (
        glue < LIMITS.glue
        or facts.cpu.wall_us > 1000.0
        or not any(operator.own for operator in facts.cpu.operators)
    ):
        return None
    return Finding(
        Bottleneck.LAUNCH_OVERHEAD,
        f"A call takes {facts.cpu.wall_us:.0f} us, of which {percent(glue)} is Python and dispatch"
        f" around the work ({percent(library + own)}).",
    )


def cpu_shares(trace: CpuTrace) -> tuple[float, float, float]:
    """Shares of a call in PyTorch's operators, in own functions, and in neither."""
    whole = max(trace.profiled_us, sum(operator.time_us for operator in trace.operators), 1e-9)
    own = sum(operator.time_us for operator in trace.operators if operator.own) / whole
    library = sum(operator.time_us for operator in trace.operators if not operator.own) / whole
    return library, own, max(0.0, 1.0 - own - library)


def busy_threads(trace: CpuTrace) -> float:
    """Over how many threads the work was spread.

    Processor time of all over that of the busiest: on a machine that others use too, processor
    time over wall time would say less.
    """
    if trace.busiest_thread_us <= 0:
        return min(trace.threads, trace.cpu_us / trace.wall_us) if trace.wall_us else 0.0
    return min(float(trace.threads), trace.cpu_us / trace.busiest_thread_us)


def _single_thread(facts: Facts) -> Finding | None:
    trace = facts.cpu
    busy = busy_threads(trace)
    if (
        trace.threads < 2
        or trace.wall_us < LIMITS.threadable_us
        or busy >= LIMITS.busy_threads * trace.threads
    ):
        return None
    return Finding(
        Bottleneck.SINGLE_THREAD,
        f"{busy:.1f} of {trace.threads} threads share the work: the rest of the processor"
        " stands idle.",
    )


def _redundant_cpu(facts: Facts) -> Finding | None:
    moved = estimated_traffic(facts)
    if moved is None or facts.work is None:
        return None
    ratio = moved / facts.work.bytes
    implied = bandwidth_share(facts)
    # Small temporaries stay in the caches: only traffic that shows in the time counts.
    shows = facts.cpu.system_share >= LIMITS.system_share or (implied or 0.0) * ratio >= 0.5
    if ratio < LIMITS.extra_traffic or not shows:
        return None
    must = byte_words(facts.work.bytes)
    return Finding(
        Bottleneck.REDUNDANT_TRAFFIC,
        f"Temporaries make it move about {byte_words(moved)} where {must} must move"
        f" ({ratio:.1f} times as much).",
    )


def estimated_traffic(facts: Facts) -> float | None:
    """Bytes moved on a CPU: what must move, and each temporary written once and read once."""
    if facts.work is None or facts.work.bytes <= 0:
        return None
    allocated = sum(operator.allocated_bytes for operator in facts.cpu.operators)
    return facts.work.bytes + 2.0 * max(0, allocated - facts.cpu.output_bytes)


def bandwidth_share(facts: Facts) -> float | None:
    """Bytes that must move over the better of two times, as a share of the measured bandwidth."""
    return facts.implied_bandwidth(min(facts.cpu.wall_us, facts.latency_us or facts.cpu.wall_us))


def _memory_cpu(facts: Facts) -> Finding | None:
    implied = bandwidth_share(facts)
    if implied is None or implied < LIMITS.implied_bandwidth:
        return None
    return Finding(
        Bottleneck.MEMORY_BANDWIDTH,
        f"The bytes that must move, over the time, are {percent(implied)} of the copy bandwidth"
        " that was measured on this machine: main memory limits it.",
    )


def _not_vectorised(facts: Facts) -> Finding | None:
    loops = facts.cpu.loops
    if loops is None or loops.scalar + loops.packed == 0:
        return None
    share = loops.packed / (loops.packed + loops.scalar)
    if share >= LIMITS.packed and not loops.calls:
        return None
    if loops.calls:
        why = f"inner loops call {', '.join(loops.calls[:3])} once for each element"
    else:
        why = f"{percent(1 - share)} of the floating-point instructions in inner loops are scalar"
    return Finding(
        Bottleneck.NOT_VECTORISED,
        f"The compiler did not vectorise what takes the time: {why}.",
    )


def _by_elimination(facts: Facts) -> Finding | None:
    """Vectorised code on all threads: what the work asks for tells memory from arithmetic."""
    trace, work = facts.cpu, facts.work
    implied = bandwidth_share(facts)
    if work is None or work.bytes <= 0 or implied is None or trace.wall_us < LIMITS.threadable_us:
        return None
    if trace.system_share >= LIMITS.system_share:
        return Finding(
            Bottleneck.MEMORY_BANDWIDTH,
            f"{percent(trace.system_share)} of the processor time is spent on mapping fresh memory"
            f" ({trace.page_faults:.0f} page faults a call): memory limits it, at"
            f" {percent(implied)} of the copy bandwidth.",
        )
    operations = work.flops + work.elementwise + 20 * work.transcendental
    if operations / work.bytes < LIMITS.intensity:
        return Finding(
            Bottleneck.MEMORY_BANDWIDTH,
            f"Each byte needs little arithmetic and {busy_threads(trace):.1f} of {trace.threads}"
            f" threads share the work: memory limits it, at {percent(implied)} of the copy"
            " bandwidth.",
        )
    rate = facts.implied_flops(trace.wall_us)
    enough = f", {percent(rate)} of the multiply-add rate measured here" if rate else ""
    return Finding(
        Bottleneck.COMPUTE,
        f"{busy_threads(trace):.1f} of {trace.threads} threads are at work while memory runs at"
        f" {percent(implied)} of its bandwidth{enough}: arithmetic (exp, division, dependent sums)"
        " limits it.",
    )


CPU_RULES: tuple[Rule, ...] = (
    at_the_bound,
    _library_cpu,
    _glue,
    _single_thread,
    _redundant_cpu,
    _memory_cpu,
    _not_vectorised,
    _by_elimination,
)
