"""Figures of a call on a CPU."""

from __future__ import annotations

from evaluator.collect.collected import CpuTrace
from tools.profiling.profile_facts import Facts


def cpu_times(trace: CpuTrace) -> tuple[float, float]:
    """Microseconds of the profiled call in PyTorch's operators, and in own functions."""
    own = sum(operator.time_us for operator in trace.operators if operator.own)
    return sum(operator.time_us for operator in trace.operators) - own, own


def busy_threads(trace: CpuTrace) -> float:
    """Over how many threads the work was spread.

    Processor time of all over that of the busiest: on a machine that others use too, processor
    time over wall time would say less.
    """
    if trace.busiest_thread_us <= 0:
        return min(trace.threads, trace.cpu_us / trace.wall_us) if trace.wall_us else 0.0
    return min(float(trace.threads), trace.cpu_us / trace.busiest_thread_us)


def estimated_traffic(facts: Facts) -> float | None:
    """Bytes moved on a CPU: what must move, and each temporary written once and read once."""
    if facts.work is None or facts.work.bytes <= 0:
        return None
    allocated = sum(operator.allocated_bytes for operator in facts.cpu.operators)
    return facts.work.bytes + 2.0 * max(0, allocated - facts.cpu.output_bytes)


def bandwidth_share(facts: Facts) -> float | None:
    """Bytes that must move over the better of two times, as a share of the measured bandwidth."""
    return facts.implied_bandwidth(min(facts.cpu.wall_us, facts.latency_us or facts.cpu.wall_us))
